// Why a kernel does not take some arguments: what the folders' checks have in common.
#pragma once

#include <optional>
#include <string>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

using Reason = std::optional<std::string>;  // empty: nothing against it

// Rows that start inside a sector would cost other sectors than declared. `what` in the plural.
Reason misplaced(const char* what, const void* address);
// Anything but f32, f16 and bf16.
Reason bad_storage(const char* what, DType storage);

}  // namespace indexpool::kernels
