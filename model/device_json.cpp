#include "indexpool/model/device_json.hpp"

#include <nlohmann/json.hpp>

namespace indexpool {
namespace {

struct ConstantKey {
  const char* key;
  Constant DeviceSpec::*member;
};
constexpr ConstantKey keys[] = {
    {"sm_clock_hz", &DeviceSpec::sm_clock_hz},
    {"hbm_peak_bytes_per_s", &DeviceSpec::hbm_peak_bytes_per_s},
    {"hbm_read_bytes_per_s", &DeviceSpec::hbm_read_bytes_per_s},
    {"hbm_write_bytes_per_s", &DeviceSpec::hbm_write_bytes_per_s},
    {"hbm_copy_bytes_per_s", &DeviceSpec::hbm_copy_bytes_per_s},
    {"hbm_loaded_latency_s", &DeviceSpec::hbm_loaded_latency_s},
    {"l2_bytes_per_s", &DeviceSpec::l2_bytes_per_s},
    {"l2_residency_bytes", &DeviceSpec::l2_residency_bytes},
    {"l2_residency_exponent", &DeviceSpec::l2_residency_exponent},
    {"shared_bytes_per_clock_per_sm", &DeviceSpec::shared_bytes_per_clock_per_sm},
    {"launch_s", &DeviceSpec::launch_s},
    {"graph_launch_s", &DeviceSpec::graph_launch_s},
    {"f32_flop_per_s", &DeviceSpec::f32_flop_per_s},
    {"issue_per_clock_per_sm", &DeviceSpec::issue_per_clock_per_sm},
    {"integer_per_clock_per_sm", &DeviceSpec::integer_per_clock_per_sm},
    {"special_per_clock_per_sm", &DeviceSpec::special_per_clock_per_sm},
    {"hbm_latency_s", &DeviceSpec::hbm_latency_s},
    {"l2_latency_s", &DeviceSpec::l2_latency_s},
    {"shared_latency_s", &DeviceSpec::shared_latency_s},
    {"atomic_latency_s", &DeviceSpec::atomic_latency_s},
    {"shuffle_latency_s", &DeviceSpec::shuffle_latency_s},
    {"barrier_latency_s", &DeviceSpec::barrier_latency_s},
    {"arithmetic_latency_s", &DeviceSpec::arithmetic_latency_s}};

struct TableKey {
  const char* key;
  std::map<std::string, Constant> DeviceSpec::*member;
};
constexpr TableKey tables[] = {{"matrix_flop_per_s", &DeviceSpec::matrix_flop_per_s},
                               {"matrix_latency_s", &DeviceSpec::matrix_latency_s}};

struct OptionalKey {
  const char* key;
  std::optional<Constant> DeviceSpec::*member;
};
constexpr OptionalKey optional_keys[] = {{"link_bytes_per_s", &DeviceSpec::link_bytes_per_s},
                                         {"link_latency_s", &DeviceSpec::link_latency_s}};

nlohmann::ordered_json json_of(const Constant& constant) {
  return {{"value", constant.value},
          {"low", constant.low},
          {"high", constant.high},
          {"source", constant.source},
          {"kind", to_string(constant.kind)}};
}

}  // namespace

std::vector<NamedConstant> named_constants(const DeviceSpec& device) {
  std::vector<NamedConstant> constants;
  for (const ConstantKey& each : keys) constants.push_back({each.key, device.*each.member});
  for (const TableKey& each : tables) {
    for (const auto& [dtype, constant] : device.*each.member) {
      constants.push_back({std::string(each.key) + '/' + dtype, constant});
    }
  }
  for (const OptionalKey& each : optional_keys) {
    if (device.*each.member) constants.push_back({each.key, *(device.*each.member)});
  }
  return constants;
}

std::string to_json(const DeviceSpec& device) {
  nlohmann::ordered_json out = {{"name", device.name},
                                {"source", device.source},
                                {"compute_capability", device.compute_capability},
                                {"sm_count", device.sm_count},
                                {"warps_per_sm", device.warps_per_sm},
                                {"memory_bytes", device.memory.value},
                                {"l2_capacity_bytes", device.l2_capacity.value},
                                {"shared_memory_per_sm_bytes", device.shared_memory_per_sm.value}};
  for (const auto& [name, constant] : named_constants(device)) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) {
      out[name] = json_of(constant);
    } else {
      out[name.substr(0, slash)][name.substr(slash + 1)] = json_of(constant);
    }
  }
  if (device.matrix_flop_per_s.empty()) out["matrix_flop_per_s"] = nlohmann::json::object();
  return out.dump(2) + "\n";
}

}  // namespace indexpool
