// Kernels with one fault each (mutants.json), and which check must notice.
#pragma once

#include <span>
#include <string_view>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::verify {

struct Mutant {
  std::string_view target, name, kernel, killed_by, why;
};
std::span<const Mutant> mutants();
std::span<const kernels::Kernel> mutant_kernels();

}  // namespace indexpool::verify
