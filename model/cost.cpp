#include "indexpool/model/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// How well resources overlap: with two equally long ones, order 4 gives 1.19 of one. Assumed, with
// the interval from perfect overlap (the largest alone) to order 2 (1.41).
constexpr double overlap_order = 4;
constexpr double slowest_overlap_order = 2;

}  // namespace

bool Prediction::operator==(const Prediction&) const = default;

double overlap_at(std::span<const double> times, Corner corner) {
  if (corner == Corner::fastest) return *std::max_element(times.begin(), times.end());
  return overlap_seconds(times, corner == Corner::expected ? overlap_order : slowest_overlap_order);
}

double overlap_seconds(std::span<const double> times, double order) {
  double top = 0;
  for (const double time : times) top = std::max(top, time);
  if (top <= 0) return 0;
  double sum = 0;
  for (const double time : times) {
    const double ratio = time / top, square = ratio * ratio;
    // The orders predict() uses, without pow().
    sum += order == 2 ? square : order == 4 ? square * square : std::pow(ratio, order);
  }
  if (order == 2) return top * std::sqrt(sum);
  return top * (order == 4 ? std::sqrt(std::sqrt(sum)) : std::pow(sum, 1 / order));
}

Seconds smooth_max(const std::vector<Seconds>& times, double order) {
  require(order >= 1, "the order of a p-norm is below 1");
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Seconds time : times) seconds.push_back(time.value);
  return Seconds(overlap_seconds(seconds, order));
}

namespace {

double overlapping_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                           Corner corner) {
  const std::array<double, 3> times = {hbm_seconds(work, device, options, corner),
                                       l2_seconds(work, device, corner),
                                       sm_seconds(work, device, options, corner)};
  return overlap_at(times, corner);
}

}  // namespace

CostNumbers predict_numbers(const Work& work, const DeviceSpec& device,
                            const CostOptions& options) {
  const auto at = [&](Corner corner) {
    return Seconds(launch_seconds(work, device, options, corner) + work.serial_latency.value +
                   fill_seconds(work, device, options, corner) +
                   overlapping_seconds(work, device, options, corner));
  };
  return {at(Corner::expected), at(Corner::fastest), at(Corner::slowest)};
}

Prediction predict(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  Prediction prediction;
  prediction.terms = {launch_term(work, device, options),
                      serial_term(work),
                      hbm_term(work, device, options),
                      l2_term(work, device),
                      shared_term(work, device),
                      matrix_term(work, device),
                      f32_term(work, device),
                      issue_term(work, device),
                      integer_term(work, device),
                      special_term(work, device),
                      latency_term(work, device, options),
                      fill_term(work, device, options)};
  const CostNumbers numbers = predict_numbers(work, device, options);
  prediction.time = numbers.time;
  prediction.low = numbers.low;
  prediction.high = numbers.high;
  const auto longest = [](const CostTerm& a, const CostTerm& b) { return a.time < b.time; };
  prediction.bound_by =
      std::max_element(prediction.terms.begin(), prediction.terms.end(), longest)->name;
  std::erase_if(prediction.terms, [](const CostTerm& term) { return term.high.value == 0; });
  prediction.device = device.name;
  prediction.hbm_bytes = hbm_bytes(work, device, options);
  prediction.memory = work.unique_read + work.unique_write;
  return prediction;
}

}  // namespace indexpool
