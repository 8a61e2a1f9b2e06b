#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"

namespace indexpool::verify {

std::string why_vacuous(const reference::Bounded& bounds, std::int64_t width, Mask mine,
                        const char* row_name) {
  const std::int64_t rows = width > 0 ? bounds.size() / width : 0;
  std::int64_t looked_at = 0, zero = 0, loose = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (!mine.empty() && mine[static_cast<std::size_t>(row)] == 0) continue;
    double largest = 0, widest = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const auto i = static_cast<std::size_t>(row * width + c);
      largest = std::max(largest, std::abs(bounds.value[i]));
      widest =
          std::max({widest, bounds.high[i] - bounds.value[i], bounds.value[i] - bounds.low[i]});
    }
    ++looked_at;
    if (largest == 0) {
      ++zero;
    } else if (widest > largest) {
      ++loose;
    }
  }
  if (looked_at == 0) return {};
  if (zero == looked_at) return fmt::format("all {} {} are zero", looked_at, row_name);
  if (2 * loose > looked_at) {
    return fmt::format("the bound is wider than the values in {} of {} {}", loose, looked_at,
                       row_name);
  }
  return {};
}

}  // namespace indexpool::verify
