// A measured implementation: the constants of its form on a device and how far its times spread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/latency/fit.hpp"
#include "indexpool/model/latency/kernel_form.hpp"

namespace indexpool {

// Measured over predicted: between the two lie 90 % of rows that no fit saw, with a confidence of
// 90 %, judged by cross-validation of the fitted rows. Never tighter than 1.
struct Spread {
  double low = 1, high = 1;
  std::int64_t rows = 0;
};

// Which spread a row takes, the first that there is: "launch, decode", "decode", "launch", "all".
std::vector<std::string> spread_keys(const KernelShape& shape, Resource bound_by);

struct Implementation {
  std::string kernel;  // as TimedRow::kernel
  std::string form;
  std::vector<FittedConstant> constants;
  std::int64_t rows_fitted = 0;
  std::map<std::string, Spread> spread;  // by spread_keys()
};

// The implementations of one table on one device, and which rows of it they were fitted on.
struct ImplementationSet {
  std::string name, table, device, source, provenance;
  double held_out_share = 0;
  std::uint64_t seed = 0;
  std::vector<Implementation> implementations;

  const Implementation* find(const std::string& kernel) const;
};

ImplementationSet load_implementations(const std::string& name_or_path);  // ConfigError
std::vector<std::string> implementation_names();
std::string to_json(const ImplementationSet& set);

// Time with its 90 % interval.
struct KernelEstimate {
  KernelTime parts;
  Seconds time, low, high;
};
KernelEstimate estimate(const Implementation& implementation, const KernelForm& form,
                        const KernelShape& shape, const DeviceSpec& device);
// On a device the constants were not fitted on: the interval also takes every constant of the
// device from its faster to its slower end.
struct MovedDevice {
  DeviceSpec expected, fastest, slowest;
  explicit MovedDevice(const DeviceSpec& device);
};
KernelEstimate estimate(const Implementation& implementation, const KernelForm& form,
                        const KernelShape& shape, const MovedDevice& device);
// The first, as a prediction with its terms and the source of their constants.
Prediction explain(const ImplementationSet& set, const Implementation& implementation,
                   const KernelShape& shape, const DeviceSpec& device);

}  // namespace indexpool
