#include "indexpool/model/latency/implementation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

Spread spread_of(const Implementation& implementation, const KernelShape& shape,
                 Resource bound_by) {
  for (const std::string& key : spread_keys(shape, bound_by)) {
    const auto at = implementation.spread.find(key);
    if (at != implementation.spread.end()) return at->second;
  }
  return {};
}

// The device's constants that a part rests on.
std::string device_source(Resource resource, const DeviceSpec& device) {
  switch (resource) {
    case Resource::fixed:
      return device.graph_launch_s.source;
    case Resource::hbm:
      return device.hbm_read_bytes_per_s.source;
    case Resource::l2:
      return device.l2_bytes_per_s.source;
    case Resource::matrix: {
      const auto rate = device.matrix_flop_per_s.find("bf16");
      return rate == device.matrix_flop_per_s.end() ? device.source : rate->second.source;
    }
    case Resource::serial:
      return "none: the implementation's own latencies";
  }
  throw InternalError("a resource without a name");
}

DeviceSpec at_corner(DeviceSpec device, Corner corner) {
  for (Constant* rate :
       {&device.sm_clock_hz, &device.hbm_read_bytes_per_s, &device.hbm_write_bytes_per_s,
        &device.hbm_copy_bytes_per_s, &device.l2_bytes_per_s, &device.l2_residency_bytes,
        &device.f32_flop_per_s}) {
    rate->value = rate_at(*rate, corner);
  }
  for (auto& [dtype, rate] : device.matrix_flop_per_s) rate.value = rate_at(rate, corner);
  for (Constant* delay : {&device.hbm_loaded_latency_s, &device.launch_s, &device.graph_launch_s}) {
    delay->value = delay_at(*delay, corner);
  }
  return device;
}

std::string constants_text(const KernelForm& form, const Implementation& implementation) {
  std::string text;
  for (std::size_t i = 0; i < form.constants.size(); ++i) {
    const FittedConstant& constant = implementation.constants[i];
    text += fmt::format("{}{} = {:.4g}{}", text.empty() ? "" : ", ", form.constants[i].name,
                        constant.value, constant.determined ? "" : " (not determined)");
  }
  return text;
}

}  // namespace

std::vector<std::string> spread_keys(const KernelShape& shape, Resource bound_by) {
  const std::string regime(to_string(bound_by));
  std::string part;
  if (const auto* cache = std::get_if<CacheShape>(&shape)) {
    part = cache->rows_per_sequence == 1 ? "decode" : "prefill";
  } else if (const auto* stream = std::get_if<StreamShape>(&shape)) {
    part = large(*stream) ? "over 80 MB" : "up to 80 MB";
  } else {
    return {regime, "all"};
  }
  return {regime + ", " + part, part, regime, "all"};
}

const Implementation* ImplementationSet::find(const std::string& kernel) const {
  const auto at = std::find_if(implementations.begin(), implementations.end(),
                               [&](const Implementation& each) { return each.kernel == kernel; });
  return at == implementations.end() ? nullptr : &*at;
}

KernelEstimate estimate(const Implementation& implementation, const KernelForm& form,
                        const KernelShape& shape, const DeviceSpec& device) {
  std::array<double, 32> constants{};
  require(implementation.constants.size() == form.constants.size() &&
              form.constants.size() <= constants.size(),
          "an implementation of another form");
  for (std::size_t i = 0; i < form.constants.size(); ++i) {
    constants[i] = implementation.constants[i].value;
  }
  KernelEstimate out;
  out.parts = form.time(shape, device, std::span(constants).first(form.constants.size()));
  const Spread spread = spread_of(implementation, shape, out.parts.bound_by());
  out.time = Seconds(out.parts.time);
  out.low = out.time * spread.low;
  out.high = out.time * spread.high;
  return out;
}

MovedDevice::MovedDevice(const DeviceSpec& device)
    : expected(device),
      fastest(at_corner(device, Corner::fastest)),
      slowest(at_corner(device, Corner::slowest)) {}

KernelEstimate estimate(const Implementation& implementation, const KernelForm& form,
                        const KernelShape& shape, const MovedDevice& device) {
  KernelEstimate out = estimate(implementation, form, shape, device.expected);
  out.low = std::min(out.low, estimate(implementation, form, shape, device.fastest).low);
  out.high = std::max(out.high, estimate(implementation, form, shape, device.slowest).high);
  return out;
}

Prediction explain(const ImplementationSet& set, const Implementation& implementation,
                   const KernelShape& shape, const DeviceSpec& device) {
  const KernelForm& form = kernel_form(implementation.form);
  const KernelEstimate whole = estimate(implementation, form, shape, device);
  const Spread spread = spread_of(implementation, shape, whole.parts.bound_by());
  Prediction out;
  out.device = device.name;
  out.time = whole.time;
  out.low = whole.low;
  out.high = whole.high;
  out.bound_by = to_string(whole.parts.bound_by());
  for (std::size_t i = 0; i < resource_count; ++i) {
    const auto resource = static_cast<Resource>(i);
    const Seconds part(whole.parts[resource]);
    if (part.value <= 0) continue;
    out.terms.push_back(
        {std::string(to_string(resource)), part, part * spread.low, part * spread.high,
         std::string(form.parts[i]),
         fmt::format("{}; device: {}", set.provenance, device_source(resource, device))});
  }
  out.terms.push_back(
      {"sum", whole.time, whole.low, whole.high, std::string(form.formula),
       "interval: 90 % of the rows of its kind that a fit to others missed by no more"});
  out.terms.push_back({"constants", {}, {}, {}, constants_text(form, implementation), set.source});
  return out;
}

}  // namespace indexpool
