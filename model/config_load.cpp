// Devices from JSON, the key's name carrying the unit.
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/named_json.hpp"

namespace indexpool {
namespace {

double positive(const JsonValue& value) {
  const double number = value.number();
  if (!std::isfinite(number) || number <= 0) {
    value.fail(fmt::format("found {}, expected a finite number above 0", number));
  }
  return number;
}

Constant read_constant(const JsonValue& value) {
  const JsonObject object = value.object({"value", "low", "high", "source"});
  Constant constant{positive(object["value"]), positive(object["low"]), positive(object["high"]),
                    sourced_text(object["source"])};
  if (constant.low > constant.value || constant.value > constant.high) {
    value.fail(fmt::format("found low {}, value {}, high {}; expected low <= value <= high",
                           constant.low, constant.value, constant.high));
  }
  return constant;
}

std::int64_t read_size(const JsonValue& value) { return value.integer(1); }

std::string read_compute_capability(const JsonValue& value) {
  std::string text = value.text();
  const std::size_t point = text.find('.');
  const bool digits_and_point =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  if (!digits_and_point || point == 0 || point == std::string::npos || point + 1 == text.size() ||
      text.find('.', point + 1) != std::string::npos) {
    value.fail(fmt::format("found \"{}\", expected major.minor, for example \"8.0\"", text));
  }
  return text;
}

// The rates no measurement can lift above another: data sheet peak, then what streams reach.
void check_rates(const DeviceSpec& device, const JsonObject& object) {
  const auto at_most_peak = [&](const char* key, const Constant& rate) {
    if (rate.high <= device.hbm_peak_bytes_per_s.high) return;
    object[key].fail(fmt::format("high is {}, above hbm_peak_bytes_per_s ({})", rate.high,
                                 device.hbm_peak_bytes_per_s.high));
  };
  at_most_peak("hbm_read_bytes_per_s", device.hbm_read_bytes_per_s);
  at_most_peak("hbm_write_bytes_per_s", device.hbm_write_bytes_per_s);
  at_most_peak("hbm_copy_bytes_per_s", device.hbm_copy_bytes_per_s);
}

void read_constants(const JsonObject& object, DeviceSpec& device) {
  device.sm_clock_hz = read_constant(object["sm_clock_hz"]);
  device.hbm_peak_bytes_per_s = read_constant(object["hbm_peak_bytes_per_s"]);
  device.hbm_read_bytes_per_s = read_constant(object["hbm_read_bytes_per_s"]);
  device.hbm_write_bytes_per_s = read_constant(object["hbm_write_bytes_per_s"]);
  device.hbm_copy_bytes_per_s = read_constant(object["hbm_copy_bytes_per_s"]);
  device.hbm_loaded_latency_s = read_constant(object["hbm_loaded_latency_s"]);
  device.l2_bytes_per_s = read_constant(object["l2_bytes_per_s"]);
  device.l2_residency_bytes = read_constant(object["l2_residency_bytes"]);
  device.l2_residency_exponent = read_constant(object["l2_residency_exponent"]);
  device.shared_bytes_per_clock_per_sm = read_constant(object["shared_bytes_per_clock_per_sm"]);
  device.launch_s = read_constant(object["launch_s"]);
  device.graph_launch_s = read_constant(object["graph_launch_s"]);
  device.f32_flop_per_s = read_constant(object["f32_flop_per_s"]);
}

DeviceSpec read_device(const JsonValue& root) {
  const JsonObject object = root.object({"name",
                                         "source",
                                         "compute_capability",
                                         "sm_count",
                                         "warps_per_sm",
                                         "memory_bytes",
                                         "l2_capacity_bytes",
                                         "shared_memory_per_sm_bytes",
                                         "sm_clock_hz",
                                         "hbm_peak_bytes_per_s",
                                         "hbm_read_bytes_per_s",
                                         "hbm_write_bytes_per_s",
                                         "hbm_copy_bytes_per_s",
                                         "hbm_loaded_latency_s",
                                         "l2_bytes_per_s",
                                         "l2_residency_bytes",
                                         "l2_residency_exponent",
                                         "shared_bytes_per_clock_per_sm",
                                         "launch_s",
                                         "graph_launch_s",
                                         "matrix_flop_per_s",
                                         "f32_flop_per_s"});
  DeviceSpec device;
  device.name = sourced_text(object["name"]);
  device.source = sourced_text(object["source"]);
  device.compute_capability = read_compute_capability(object["compute_capability"]);
  device.sm_count = read_size(object["sm_count"]);
  device.warps_per_sm = read_size(object["warps_per_sm"]);
  device.memory = Bytes(read_size(object["memory_bytes"]));
  device.l2_capacity = Bytes(read_size(object["l2_capacity_bytes"]));
  device.shared_memory_per_sm = Bytes(read_size(object["shared_memory_per_sm_bytes"]));
  read_constants(object, device);
  for (const auto& [dtype, rate] : object["matrix_flop_per_s"].members()) {
    if (!dtype_from_name(dtype)) rate.fail("expected a dtype's name as key, for example \"bf16\"");
    device.matrix_flop_per_s[dtype] = read_constant(rate);
  }
  check_rates(device, object);
  return device;
}

}  // namespace

DeviceSpec load_device(const std::string& name_or_path) {
  return read_device(find_json(name_or_path, embedded_devices(), "device", "devices"));
}

std::vector<std::string> device_names() { return names_of(embedded_devices()); }

}  // namespace indexpool
