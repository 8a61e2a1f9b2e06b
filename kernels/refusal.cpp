#include "indexpool/kernels/refusal.hpp"

#include <fmt/format.h>

#include "indexpool/kernels/access_cost.hpp"

namespace indexpool::kernels {

Reason misplaced(const char* what, const void* address) {
  const std::int64_t beyond = address_of(address) % sector_bytes;
  if (beyond == 0) return std::nullopt;
  return fmt::format("{} start {} bytes past a multiple of {}; align them", what, beyond,
                     sector_bytes);
}

Reason bad_storage(const char* what, DType storage) {
  if (storage == DType::f32 || storage == DType::f16 || storage == DType::bf16) return std::nullopt;
  return fmt::format("{} are stored as {}; these kernels read f32, f16 and bf16", what,
                     info(storage).name);
}

}  // namespace indexpool::kernels
