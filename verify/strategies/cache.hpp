// The pools of one layer as bytes, each with a checksum that is taken when it is stored and looked
// at when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "indexpool/model/dtype.hpp"
#include "indexpool/verify/strategies/settings.hpp"

namespace indexpool::verify::strategies {

struct Pool {
  Segment segment;
  DType format = DType::bf16;
  float scale = 1;               // of 8-bit formats: largest magnitude over the largest code
  std::vector<std::byte> codes;  // [D]
  std::uint32_t checksum = 0;    // CRC32C of codes and scale

  std::vector<double> weights;      // [m] it was pooled with
  std::vector<double> pooled_from;  // [m, D]
  std::vector<double> value;        // [D] before it was stored
  std::int64_t weights_step = -1, weights_layer = 0;
  std::int64_t bytes() const;
};
// Codes, scale and checksum.
void store(std::span<const double> value, DType format, Pool& pool);
std::vector<double> load(const Pool& pool);
bool intact(const Pool& pool);

}  // namespace indexpool::verify::strategies
