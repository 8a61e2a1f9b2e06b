// Devices from JSON, the key's name carrying the unit.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/named_json.hpp"

namespace indexpool {
namespace {

// What a constant of a unit can be on any device there is or may soon be: outside, its unit was
// mistaken, and sums of times would leave what a double holds. The key's end names the unit.
struct Bounds {
  std::string_view key_end;
  double low, high;
};
constexpr Bounds bounds_by_unit[] = {
    {"_bytes_per_s", 1e6, 1e18},
    {"_flop_per_s", 1e6, 1e21},
    {"_per_clock_per_sm", 0.01, 1e6},
    {"_bytes", 1, 1e15},
    {"_exponent", 0.1, 1e3},
    {"_hz", 1e6, 1e12},
    {"_s", 1e-12, 1},
};

const Bounds& bounds_of(std::string_view key) {
  for (const Bounds& bounds : bounds_by_unit) {
    if (key.ends_with(bounds.key_end)) return bounds;
  }
  throw InternalError("a device's key without a unit: " + std::string(key));
}

double within(const JsonValue& value, const Bounds& bounds) {
  const double number = value.number();
  if (!(number >= bounds.low && number <= bounds.high)) {
    value.fail(
        fmt::format("found {}, expected a number from {} to {}", number, bounds.low, bounds.high));
  }
  return number;
}

struct KindName {
  std::string_view name;
  ConstantKind kind;
  std::string_view source_begin;  // what a source of this kind begins with, where none is named
};
constexpr KindName kind_names[] = {{"published", ConstantKind::published, "published"},
                                   {"measured", ConstantKind::measured, "own measurement"},
                                   {"assumed", ConstantKind::assumed, "assumed"}};

ConstantKind read_kind(const std::optional<JsonValue>& value, const std::string& source) {
  if (!value) {
    for (const KindName& row : kind_names) {
      if (source.starts_with(row.source_begin)) return row.kind;
    }
    return ConstantKind::published;
  }
  const std::string name = value->text();
  for (const KindName& row : kind_names) {
    if (row.name == name) return row.kind;
  }
  value->fail(fmt::format("found \"{}\", expected measured, published or assumed{}", name,
                          did_you_mean(name, {"measured", "published", "assumed"})));
}

// `key` names the unit.
Constant read_constant(const JsonValue& value, std::string_view key) {
  const JsonObject object = value.object({"value", "low", "high", "source"}, {"kind"});
  const Bounds& bounds = bounds_of(key);
  Constant constant{within(object["value"], bounds), within(object["low"], bounds),
                    within(object["high"], bounds), sourced_text(object["source"])};
  constant.kind = read_kind(object.find("kind"), constant.source);
  if (constant.low > constant.value || constant.value > constant.high) {
    value.fail(fmt::format("found low {}, value {}, high {}; expected low <= value <= high",
                           constant.low, constant.value, constant.high));
  }
  return constant;
}

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
  const auto constant = [&](const char* key) { return read_constant(object[key], key); };
  device.sm_clock_hz = constant("sm_clock_hz");
  device.hbm_peak_bytes_per_s = constant("hbm_peak_bytes_per_s");
  device.hbm_read_bytes_per_s = constant("hbm_read_bytes_per_s");
  device.hbm_write_bytes_per_s = constant("hbm_write_bytes_per_s");
  device.hbm_copy_bytes_per_s = constant("hbm_copy_bytes_per_s");
  device.hbm_loaded_latency_s = constant("hbm_loaded_latency_s");
  device.l2_bytes_per_s = constant("l2_bytes_per_s");
  device.l2_residency_bytes = constant("l2_residency_bytes");
  device.l2_residency_exponent = constant("l2_residency_exponent");
  device.shared_bytes_per_clock_per_sm = constant("shared_bytes_per_clock_per_sm");
  device.launch_s = constant("launch_s");
  device.graph_launch_s = constant("graph_launch_s");
  device.f32_flop_per_s = constant("f32_flop_per_s");
}

struct OptionalConstant {
  std::string_view key;
  Constant DeviceSpec::*constant;
  double assumed, low, high;  // in cycles where the key is a latency
};
constexpr OptionalConstant optional_constants[] = {
    {"issue_per_clock_per_sm", &DeviceSpec::issue_per_clock_per_sm, 4, 3, 4},
    {"integer_per_clock_per_sm", &DeviceSpec::integer_per_clock_per_sm, 2, 1.8, 2},
    {"special_per_clock_per_sm", &DeviceSpec::special_per_clock_per_sm, 0.5, 0.45, 0.5},
    {"hbm_latency_s", &DeviceSpec::hbm_latency_s, 800, 500, 1200},
    {"l2_latency_s", &DeviceSpec::l2_latency_s, 270, 200, 420},
    {"shared_latency_s", &DeviceSpec::shared_latency_s, 29, 23, 35},
    {"atomic_latency_s", &DeviceSpec::atomic_latency_s, 60, 30, 120},
    {"shuffle_latency_s", &DeviceSpec::shuffle_latency_s, 24, 20, 30},
    {"barrier_latency_s", &DeviceSpec::barrier_latency_s, 30, 20, 80},
    {"arithmetic_latency_s", &DeviceSpec::arithmetic_latency_s, 4, 4, 6},
};
constexpr double assumed_matrix_cycles[] = {33, 16, 40};  // value, low, high

// A device file may leave out what it does not know: then cycles that A100 and H100 roughly share.
Constant assumed(double value, double low, double high, double scale) {
  return {value * scale, low * scale, high * scale,
          "assumed: not in the device's file; cycles as published for the A100 and H100",
          ConstantKind::assumed};
}

void read_optional_constants(const JsonObject& object, DeviceSpec& device) {
  const double cycle = 1 / device.sm_clock_hz.value;
  for (const OptionalConstant& each : optional_constants) {
    const auto given = object.find(each.key);
    device.*each.constant =
        given ? read_constant(*given, each.key)
              : assumed(each.assumed, each.low, each.high, each.key.ends_with("_s") ? cycle : 1);
  }
  for (const auto& [dtype, rate] : device.matrix_flop_per_s) {
    device.matrix_latency_s[dtype] = assumed(assumed_matrix_cycles[0], assumed_matrix_cycles[1],
                                             assumed_matrix_cycles[2], cycle);
  }
  if (const auto rate = object.find("link_bytes_per_s")) {
    device.link_bytes_per_s = read_constant(*rate, "link_bytes_per_s");
  }
  if (const auto latency = object.find("link_latency_s")) {
    device.link_latency_s = read_constant(*latency, "link_latency_s");
  }
  const auto given = object.find("matrix_latency_s");
  if (!given) return;
  for (const auto& [dtype, latency] : given->members()) {
    if (!device.matrix_flop_per_s.contains(dtype)) {
      latency.fail("expected a key of matrix_flop_per_s");
    }
    device.matrix_latency_s[dtype] = read_constant(latency, "matrix_latency_s");
  }
}

DeviceSpec read_device(const JsonValue& root) {
  const JsonObject object =
      root.object({"name",
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
                   "f32_flop_per_s"},
                  {"issue_per_clock_per_sm", "integer_per_clock_per_sm", "special_per_clock_per_sm",
                   "hbm_latency_s", "l2_latency_s", "shared_latency_s", "atomic_latency_s",
                   "shuffle_latency_s", "barrier_latency_s", "arithmetic_latency_s",
                   "matrix_latency_s", "link_bytes_per_s", "link_latency_s"});
  DeviceSpec device;
  device.name = sourced_text(object["name"]);
  device.source = sourced_text(object["source"]);
  device.compute_capability = read_compute_capability(object["compute_capability"]);
  constexpr std::int64_t most_units = 1 << 20, most_bytes = std::int64_t{1} << 50;
  device.sm_count = object["sm_count"].integer(1, most_units);
  device.warps_per_sm = object["warps_per_sm"].integer(1, most_units);
  device.memory = Bytes(object["memory_bytes"].integer(1, most_bytes));
  device.l2_capacity = Bytes(object["l2_capacity_bytes"].integer(1, most_bytes));
  device.shared_memory_per_sm = Bytes(object["shared_memory_per_sm_bytes"].integer(1, most_bytes));
  read_constants(object, device);
  for (const auto& [dtype, rate] : object["matrix_flop_per_s"].members()) {
    if (!dtype_from_name(dtype)) rate.fail("expected a dtype's name as key, for example \"bf16\"");
    device.matrix_flop_per_s[dtype] = read_constant(rate, "matrix_flop_per_s");
  }
  check_rates(device, object);
  read_optional_constants(object, device);
  return device;
}

}  // namespace

std::string_view to_string(ConstantKind kind) {
  for (const KindName& row : kind_names) {
    if (row.kind == kind) return row.name;
  }
  throw InternalError("a constant of no kind");
}

DeviceSpec load_device(const std::string& name_or_path) {
  return read_device(find_json(name_or_path, embedded_devices(), "device", "devices"));
}

std::vector<std::string> device_names() { return names_of(embedded_devices()); }

}  // namespace indexpool
