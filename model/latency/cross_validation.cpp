#include "indexpool/model/latency/cross_validation.hpp"

#include <algorithm>
#include <array>

#include "indexpool/model/latency/fit.hpp"
#include "indexpool/model/latency/held_out.hpp"

namespace indexpool {
namespace {

std::vector<double> values_of(const Fit& fit) {
  std::vector<double> values;
  for (const FittedConstant& constant : fit.constants) values.push_back(constant.value);
  return values;
}

}  // namespace

std::vector<UnseenRow> cross_validated(const KernelForm& form, const DeviceSpec& device,
                                       std::span<const TimedRow* const> rows, std::uint64_t seed,
                                       const std::function<void()>& advance) {
  std::vector<int> folds;
  for (const TimedRow* row : rows) folds.push_back(fold_of(row->family, seed, validation_folds));
  std::array<std::vector<double>, validation_folds> constants;
  for (int fold = 0; fold < validation_folds; ++fold) {
    std::vector<const TimedRow*> others;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (folds[i] != fold) others.push_back(rows[i]);
    }
    if (others.size() == rows.size()) continue;  // the fold is empty
    if (others.empty()) return {};
    constants[static_cast<std::size_t>(fold)] =
        values_of(fit_constants(form, device, others, advance));
  }
  std::vector<UnseenRow> unseen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KernelTime predicted =
        form.time(rows[i]->shape, device, constants[static_cast<std::size_t>(folds[i])]);
    unseen.push_back({rows[i], predicted.bound_by(), rows[i]->time.value / predicted.time});
  }
  return unseen;
}

}  // namespace indexpool
