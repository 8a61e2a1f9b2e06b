#include "indexpool/verify/faults/wilson.hpp"

#include <algorithm>
#include <cmath>

namespace indexpool::verify::faults {

Share wilson(std::int64_t successes, std::int64_t trials) {
  if (trials <= 0) return {};
  constexpr double z = 1.959963984540054;  // the normal distribution's 97.5 % point
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double scale = 1 + z * z / n;
  const double centre = (share + z * z / (2 * n)) / scale;
  const double half = z / scale * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  // At the ends the formula gives 0 and 1 but for rounding.
  const double low = successes == 0 ? 0 : std::max(0.0, centre - half);
  const double high = successes == trials ? 1 : std::min(1.0, centre + half);
  return {share, low, high};
}

double rate_bound(std::int64_t seen, std::int64_t runs) {
  if (runs <= 0) return 1;
  if (seen > 0) return wilson(seen, runs).high;
  return std::min(1.0, 3 / static_cast<double>(runs));
}

}  // namespace indexpool::verify::faults
