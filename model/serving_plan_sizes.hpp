// Refusals and divisions that the serving plans share. Not installed.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::serving {

inline void at_least(const char* what, std::int64_t found, std::int64_t least) {
  if (found < least)
    throw ConfigError(fmt::format("{} is {}; expected at least {}", what, found, least));
}

inline std::int64_t ceil_div(std::int64_t n, std::int64_t by) {
  return n / by + (n % by != 0 ? 1 : 0);
}

inline std::int64_t round_up(std::int64_t n, std::int64_t to, const char* what) {
  return checked_product(ceil_div(n, to), to, what);
}

}  // namespace indexpool::serving
