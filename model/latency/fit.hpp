// Constants of a form from measured rows: damped least squares on the logarithm of predicted over
// measured, with outliers counted by their distance instead of its square.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "indexpool/model/latency/kernel_form.hpp"
#include "indexpool/model/latency/timing_table.hpp"

namespace indexpool {

struct FittedConstant {
  double value = 0, low = 0, high = 0;  // 90 % of its posterior, from the curvature at the optimum
  bool determined = false;  // false: no row depends on it, `value` is where the fit started
};
struct Fit {
  std::vector<FittedConstant> constants;  // in the form's order
  double cost = 0;                        // mean of the loss over the rows
  std::int64_t rows = 0;
};

// More rows than this are thinned evenly: a fit takes seconds.
inline constexpr std::size_t most_fit_rows = 1600;

// `rows` not empty. Deterministic. `advance` is called now and then.
Fit fit_constants(const KernelForm& form, const DeviceSpec& device,
                  std::span<const TimedRow* const> rows, const std::function<void()>& advance = {});

}  // namespace indexpool
