// Shapes as work for the cost model.
#pragma once

#include <string>

#include "indexpool/model/config.hpp"
#include "indexpool/model/step/operation.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::step {

// Where bytes depend on what rows choose, from the least to the most that they may be.
struct WorkRange {
  Work expected, least, most;
  bool exact = true;  // the three are the same
};

Work work_of(const MatrixProduct& product, std::int64_t rows, const DeviceSpec& device);
WorkRange work_of(const ExpertProduct& product, std::int64_t rows, const DeviceSpec& device);
Work work_of(const Stream& stream, const Size& size);
Work work_of(const Attention& attention, const Size& size, const DeviceSpec& device);
Work work_of(const Recurrence& recurrence, const Size& size);

// "1 x 1536 times 1536 x 16384, bf16": in words, at a size.
std::string text_of(const Shape& shape, const Size& size, const DeviceSpec& device);

// Experts that `rows` rows touch when each chooses evenly: routed (1 - (1 - per_token/routed)^rows)
double touched_experts(std::int64_t routed, std::int64_t per_token, std::int64_t rows);
// Bytes of the entries that a step reads, each once.
Bytes cache_bytes(const Attention& attention, const Size& size);
// Entries that the mean row of a step sees of a cache.
double mean_entries(const Attention& attention, const Size& size);

ReadBytes read_bytes(const Shape& shape, const Size& size);

}  // namespace indexpool::step
