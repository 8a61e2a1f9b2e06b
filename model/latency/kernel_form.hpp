// How a kind of kernel spends its time: a formula of terms on a device, whose constants belong to
// the implementation (its tiles, what it keeps in flight, what it does per row), not to the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/latency/kernel_shape.hpp"

namespace indexpool {

// What a term waits for; also how rows are grouped into regimes.
enum class Resource { fixed, hbm, l2, matrix, serial };
inline constexpr std::size_t resource_count = 5;
std::string_view to_string(Resource resource);  // "launch and fixed", "HBM", ...

// Seconds by resource: fixed and the part of serial that nothing overlaps add, the others overlap.
// `time` is the sum that the form makes of them.
struct KernelTime {
  double time = 0;
  std::array<double, resource_count> part{};
  Resource bound_by() const;  // of the longest part
  double& operator[](Resource resource) { return part[static_cast<std::size_t>(resource)]; }
  double operator[](Resource resource) const { return part[static_cast<std::size_t>(resource)]; }
};

struct FormConstant {
  std::string_view name;  // the end names the unit: "_s", "_bytes", "_bytes_per_s", "_share"
  double start, least, most;
  std::string_view says;
  std::span<const double> tried = {};  // instead of `start`: the best of these is kept
  bool continuous = true;              // false: only the values tried
};

struct KernelForm {
  std::string_view name;
  std::string_view formula;
  std::array<std::string_view, resource_count>
      parts;  // formula of each part; "" where there is none
  std::span<const FormConstant> constants;
  KernelTime (*time)(const KernelShape& shape, const DeviceSpec& device,
                     std::span<const double> constants);
};
std::span<const KernelForm> kernel_forms();
const KernelForm& kernel_form(std::string_view name);  // ConfigError with near names

// (a^4 + b^4 + c^4 + d^4)^(1/4): resources that overlap, as in predict().
double overlapped(double a, double b, double c = 0, double d = 0);

}  // namespace indexpool
