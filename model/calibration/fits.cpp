#include "indexpool/model/calibration/fits.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/calibration/golden_section.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::calibration {
namespace {

// Above this share of the peak a stream says little about latency: it enters with the power three.
constexpr double telling_share = 0.85;
constexpr double shortest_latency_s = 1e-9, longest_latency_s = 1e-3;

double squared_log(double ratio) { return std::log(ratio) * std::log(ratio); }

// `sorted` not empty.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

double rate_of(const StreamSample& stream) {
  return static_cast<double>(stream.bytes) / stream.seconds.median;
}

double modelled_rate(const StreamSample& stream, const DeviceSpec& device, double latency) {
  DeviceSpec with = device;
  with.hbm_loaded_latency_s = {latency, latency, latency, "tried"};
  const Bytes in_flight(stream.in_flight_bytes_per_sm() * device.sm_count);
  return rate_in_flight(BytesPerSecond(device.hbm_read_bytes_per_s.value), in_flight, with).value;
}

// The latency at which the model gives this stream's own rate: the rate falls as latency grows.
double latency_of(const StreamSample& stream, const DeviceSpec& device) {
  double low = std::log(shortest_latency_s), high = std::log(longest_latency_s);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (modelled_rate(stream, device, std::exp(middle)) > rate_of(stream) ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

}  // namespace

Estimate spread_of(std::vector<double> values, std::string_view what) {
  if (values.empty()) throw ConfigError(fmt::format("no samples of {}", what));
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)};
}

Estimate slope_of(std::vector<std::pair<double, double>> points, std::string_view what) {
  std::sort(points.begin(), points.end());
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / static_cast<double>(points.size());
    mean_y += y / static_cast<double>(points.size());
  }
  double xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  if (xx == 0) throw ConfigError(fmt::format("{}: needs samples of two sizes or more", what));
  Estimate slope{xy / xx, xy / xx, xy / xx};
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double width = points[i].first - points[i - 1].first;
    if (width == 0) continue;
    const double between = (points[i].second - points[i - 1].second) / width;
    slope.low = std::min(slope.low, between);
    slope.high = std::max(slope.high, between);
  }
  if (!(slope.low > 0)) {
    throw ConfigError(
        fmt::format("{}: more of them take no more time ({:.3g} s each between two "
                    "sizes); measure again on an idle device",
                    what, slope.low));
  }
  return slope;
}

Estimate loaded_latency(std::span<const StreamSample> streams, const DeviceSpec& device) {
  const double peak = device.hbm_read_bytes_per_s.value;
  std::vector<StreamSample> reads;
  std::vector<double> singles;
  for (const StreamSample& stream : streams) {
    if (stream.access != Access::read) continue;
    reads.push_back(stream);
    if (rate_of(stream) < telling_share * peak) singles.push_back(latency_of(stream, device));
  }
  if (singles.empty()) {
    throw ConfigError(
        fmt::format("no read stream is short of bytes in flight: all {} reach {:.0f} % of {:.4g} "
                    "B/s; the latency under load needs streams of few threads",
                    reads.size(), 100 * telling_share, peak));
  }
  const double value = golden_section(shortest_latency_s, longest_latency_s, [&](double latency) {
    double cost = 0;
    for (const StreamSample& read : reads) {
      cost += squared_log(modelled_rate(read, device, latency) / rate_of(read));
    }
    return cost;
  });
  const Estimate single = spread_of(std::move(singles), "streams short of bytes in flight");
  return {value, std::min(value, single.low), std::max(value, single.high)};
}

}  // namespace indexpool::calibration
