#include "indexpool/verify/strategies/cache.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/verify/faults/crc32c.hpp"

namespace indexpool::verify::strategies {
namespace {

bool scaled(DType format) { return info(format).bytes == 1; }

std::uint32_t checksum_of(const Pool& pool) {
  const auto scale = std::as_bytes(std::span(&pool.scale, 1));
  return faults::crc32c(scale, faults::crc32c(pool.codes));
}

}  // namespace

std::int64_t Pool::bytes() const {
  return static_cast<std::int64_t>(codes.size()) + (scaled(format) ? 4 : 0);
}

void store(std::span<const double> value, DType format, Pool& pool) {
  pool.format = format;
  pool.scale = 1;
  double largest = 0;
  for (const double x : value) largest = std::max(largest, std::abs(x));
  if (scaled(format) && largest > 0)
    pool.scale = static_cast<float>(largest / info(format).largest);
  pool.codes.assign(value.size() * static_cast<std::size_t>(info(format).bytes), std::byte{0});
  for (std::size_t c = 0; c < value.size(); ++c)
    store_element(format, pool.codes.data(), static_cast<std::int64_t>(c), value[c] / pool.scale);
  pool.checksum = checksum_of(pool);
}

std::vector<double> load(const Pool& pool) {
  std::vector<double> value(pool.codes.size() / static_cast<std::size_t>(info(pool.format).bytes));
  for (std::size_t c = 0; c < value.size(); ++c)
    value[c] =
        pool.scale * load_element(pool.format, pool.codes.data(), static_cast<std::int64_t>(c));
  return value;
}

bool intact(const Pool& pool) { return pool.checksum == checksum_of(pool); }

}  // namespace indexpool::verify::strategies
