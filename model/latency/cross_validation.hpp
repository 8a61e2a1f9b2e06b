// What a fit misses rows by that it has not seen. Internal to the layer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "indexpool/model/latency/kernel_form.hpp"
#include "indexpool/model/latency/timing_table.hpp"

namespace indexpool {

// A row against constants that were fitted without it.
struct UnseenRow {
  const TimedRow* row = nullptr;
  Resource bound_by = Resource::fixed;
  double ratio = 1;  // measured over predicted
};

inline constexpr int validation_folds = 5;

// Each family of `rows` falls, by a hash of its name and the seed, into one of the folds; each fold
// is predicted with constants that are fitted on the others. In the order of `rows`. Empty when all
// rows are of one family: there is nothing to fit without it.
std::vector<UnseenRow> cross_validated(const KernelForm& form, const DeviceSpec& device,
                                       std::span<const TimedRow* const> rows, std::uint64_t seed,
                                       const std::function<void()>& advance = {});

}  // namespace indexpool
