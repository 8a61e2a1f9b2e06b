#include "indexpool/model/cost.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// How well resources overlap: with two equally long ones, order 4 gives 1.19 of one. Assumed, with
// the interval from perfect overlap (the largest alone) to order 2 (1.41).
constexpr double overlap_order = 4;
constexpr double slowest_overlap_order = 2;

Seconds largest(const std::vector<Seconds>& times) {
  return times.empty() ? Seconds() : *std::max_element(times.begin(), times.end());
}

}  // namespace

bool Prediction::operator==(const Prediction&) const = default;

Seconds smooth_max(const std::vector<Seconds>& times, double order) {
  require(order >= 1, "the order of a p-norm is below 1");
  const Seconds top = largest(times);
  if (top.value <= 0) return Seconds();
  double sum = 0;
  for (const Seconds time : times) sum += std::pow(time / top, order);
  return Seconds(top.value * std::pow(sum, 1 / order));
}

Prediction predict(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  const std::vector<CostTerm> overlapping = {hbm_term(work, device, options), l2_term(work, device),
                                             shared_term(work, device), matrix_term(work, device),
                                             f32_term(work, device)};
  Prediction prediction;
  prediction.terms = {launch_term(work, device, options), serial_term(work)};
  for (const CostTerm& term : prediction.terms) {
    prediction.time += term.time;
    prediction.low += term.low;
    prediction.high += term.high;
  }
  std::vector<Seconds> expected, fastest, slowest;
  for (const CostTerm& term : overlapping) {
    expected.push_back(term.time);
    fastest.push_back(term.low);
    slowest.push_back(term.high);
    prediction.terms.push_back(term);
  }
  prediction.time += smooth_max(expected, overlap_order);
  prediction.low += largest(fastest);
  prediction.high += smooth_max(slowest, slowest_overlap_order);

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
