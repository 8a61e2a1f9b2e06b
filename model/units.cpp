#include "indexpool/model/units.hpp"

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {

std::int64_t checked_product(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw ConfigError(fmt::format("{}: {} x {} leaves 63 bits; choose smaller sizes", what, a, b));
  }
  return product;
}

std::int64_t checked_sum(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw ConfigError(fmt::format("{}: {} + {} leaves 63 bits; choose smaller sizes", what, a, b));
  }
  return sum;
}

}  // namespace indexpool
