// What topk refuses, how it loads, and what it declares to move: equal, byte for byte, to what the
// executor counts.
#pragma once

#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

std::optional<std::string> bad_topk(const TopkArgs& args);
// Whether every row of logits starts on a multiple of 16 bytes.
bool topk_loads_vectors(const TopkArgs& args);
// Without host_rows every row is taken to see as many pools as logits_stride holds.
Work declared_topk(const TopkArgs& args);

}  // namespace indexpool::kernels
