#include "indexpool/kernels/checks.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace indexpool::kernels {
namespace {

constexpr std::int64_t sector = 32;
constexpr std::int64_t largest_kpool = 64;
constexpr std::uintptr_t vector_bytes = 16;

// 16-byte accesses trap on any other address, and what is left of a sector is not what was
// declared.
std::optional<std::string> misaligned(const char* what, const void* address) {
  const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(address) % vector_bytes;
  if (beyond == 0) return std::nullopt;
  return fmt::format("{} start {} bytes past a multiple of {}; align them", what, beyond,
                     vector_bytes);
}

}  // namespace

std::string no_instance(const Shape& shape) {
  return fmt::format(
      "no instance is compiled for numeric mode \"{}\" with index_head_dim {}: head dims are 32, "
      "64 "
      "and 128, modes are the rows of numeric_modes()",
      shape.mode.name, shape.config.index_head_dim);
}

std::optional<std::string> bad_cache(const PagedCache& cache) {
  if (auto reason = misaligned("the cache's pages", cache.pages)) return reason;
  if (cache.states_per_page < 1)
    return fmt::format("a page of {} states; it needs at least 1", cache.states_per_page);
  if (cache.page_stride % sector != 0)
    return fmt::format("page stride is {} bytes; it must be a multiple of {}", cache.page_stride,
                       sector);
  return std::nullopt;
}

std::optional<std::string> bad_ring(const TailRing& tail, const IndexerConfig& config) {
  if (auto reason = misaligned("the tail ring", tail.base)) return reason;
  if (tail.ring < config.index_kpool)
    return fmt::format("a ring of {} entries cannot hold a pool of {} tokens", tail.ring,
                       config.index_kpool);
  if (tail.block_stride % sector != 0)
    return fmt::format("tail block stride is {} bytes; it must be a multiple of {}",
                       tail.block_stride, sector);
  return std::nullopt;
}

std::optional<std::string> bad_kpool(const IndexerConfig& config) {
  if (config.index_kpool < 1 || config.index_kpool > largest_kpool)
    return fmt::format("index_kpool is {}; these kernels take 1 to {}", config.index_kpool,
                       largest_kpool);
  return std::nullopt;
}

}  // namespace indexpool::kernels
