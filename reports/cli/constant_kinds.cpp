#include "indexpool/reports/cli/constant_kinds.hpp"

#include <set>
#include <vector>

namespace indexpool::cli {
namespace {

std::vector<const Constant*> constants_of(const DeviceSpec& device) {
  std::vector<const Constant*> all = {
      &device.hbm_read_bytes_per_s,  &device.hbm_write_bytes_per_s,
      &device.hbm_copy_bytes_per_s,  &device.hbm_loaded_latency_s,
      &device.hbm_latency_s,         &device.l2_bytes_per_s,
      &device.l2_latency_s,          &device.shared_bytes_per_clock_per_sm,
      &device.shared_latency_s,      &device.launch_s,
      &device.graph_launch_s,        &device.f32_flop_per_s,
      &device.issue_per_clock_per_sm};
  for (const auto& [dtype, rate] : device.matrix_flop_per_s) all.push_back(&rate);
  for (const auto* link : {&device.link_bytes_per_s, &device.link_latency_s}) {
    if (*link) all.push_back(&**link);
  }
  return all;
}

}  // namespace

std::string constant_kinds(const CostTerm& term, const DeviceSpec& device, bool fitted) {
  std::set<std::string> kinds;
  for (const Constant* constant : constants_of(device)) {
    const bool named =
        !constant->source.empty() && term.source.find(constant->source) != std::string::npos;
    if (named) kinds.emplace(to_string(constant->kind));
  }
  if (fitted || term.source.starts_with("fitted")) kinds.emplace("fitted");
  if (kinds.empty()) return "declared";
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text;
}

}  // namespace indexpool::cli
