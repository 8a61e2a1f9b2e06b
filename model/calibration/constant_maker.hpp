// Turns samples into a device's constants, one group after another. Internal to the layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "indexpool/model/calibration/fits.hpp"
#include "indexpool/model/calibration/samples.hpp"
#include "indexpool/model/config.hpp"

namespace indexpool::calibration {

// Each method fills in the constants of its name; ConfigError when samples are missing.
class ConstantMaker {
 public:
  ConstantMaker(const Samples& samples, DeviceSpec& device) : samples_(samples), device_(device) {}

  void clocks();
  void memory(const std::optional<DeviceSpec>& base);
  void cache();
  void streaming_multiprocessors();
  void matrix();
  void latencies();
  void launches();

 private:
  // To four digits, with date, method and kind.
  Constant measured(const Estimate& estimate, const std::string& how) const;
  Constant stream(Access access) const;
  std::vector<const RateSample*> rates(Rate rate, const std::string& dtype = "") const;
  Estimate best_rate(const std::vector<const RateSample*>& rates, double per) const;
  Estimate clocked(Rate rate) const;
  Estimate step(Chain chain, const std::string& dtype = "") const;
  std::vector<std::string> dtypes_of_matrix() const;

  const Samples& samples_;
  DeviceSpec& device_;
};

}  // namespace indexpool::calibration
