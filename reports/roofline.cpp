#include "indexpool/reports/roofline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

double value_of(const Record& record, const std::string& name) {
  const auto at = record.values.find(name);
  return at == record.values.end() ? 0 : at->second;
}

RooflinePoint point_of(const Record& record, const std::string& prefix) {
  const Prediction& prediction = *record.prediction;
  RooflinePoint point;
  point.kernel = record.implementation;
  point.what = record.case_name;
  if (const double tokens = value_of(record, "predicted_tokens"); tokens > 0) {
    point.what =
        fmt::format("{}, {} tokens", record.op, format_tokens(static_cast<std::int64_t>(tokens)));
  }
  point.flop = value_of(record, prefix + "matrix_flop") + value_of(record, prefix + "f32_flop");
  point.bytes = static_cast<double>(prediction.hbm_bytes.value);
  point.predicted = prediction.time.value;
  point.low = prediction.low.value;
  point.high = prediction.high.value;
  return point;
}

// By rate; those that would be one line to the eye are one.
std::vector<Ceiling> matrix_ceilings(const DeviceSpec& device) {
  constexpr double same = 1.03;
  std::multimap<double, std::pair<std::string, std::string>> by_rate;
  for (const auto& [dtype, rate] : device.matrix_flop_per_s) {
    by_rate.emplace(rate.value, std::make_pair(dtype, rate.source));
  }
  std::vector<Ceiling> out;
  for (const auto& [rate, named] : by_rate) {
    if (out.empty() || rate > same * out.back().rate) {
      out.push_back({named.first, false, rate, named.second});
    } else {
      out.back().name += ", " + named.first;
      out.back().rate = rate;
    }
  }
  for (Ceiling& ceiling : out) ceiling.name += " matrix units";
  return out;
}

}  // namespace

std::vector<Ceiling> ceilings(const DeviceSpec& device) {
  std::vector<Ceiling> out = {
      {"HBM", true, device.hbm_read_bytes_per_s.value, device.hbm_read_bytes_per_s.source},
      {"L2", true, device.l2_bytes_per_s.value, device.l2_bytes_per_s.source}};
  for (Ceiling& ceiling : matrix_ceilings(device)) out.push_back(std::move(ceiling));
  out.push_back({"f32", false, device.f32_flop_per_s.value, device.f32_flop_per_s.source});
  return out;
}

std::vector<RooflinePoint> roofline_points(const std::vector<Record>& records,
                                           const std::string& device) {
  std::vector<RooflinePoint> points;
  for (const Record& record : records) {
    if (!record.prediction || record.prediction->device != device) continue;
    if (record.values.contains("predicted_matrix_flop")) {
      points.push_back(point_of(record, "predicted_"));
    } else if (record.values.contains("work_matrix_flop")) {
      points.push_back(point_of(record, "work_"));
      points.back().bytes =
          std::max(points.back().bytes, value_of(record, "work_unique_read_bytes") +
                                            value_of(record, "work_unique_write_bytes"));
      if (record.measurement) points.back().measured = record.measurement->median.value;
    }
  }
  return points;
}

std::string roofline_note(const std::vector<RooflinePoint>& points) {
  std::set<std::string> without;
  for (const RooflinePoint& point : points) {
    if (point.flop == 0) without.insert(point.kernel);
  }
  if (without.empty()) return "";
  std::string names;
  for (const std::string& name : without) names += (names.empty() ? "" : ", ") + name;
  return fmt::format("Not on it: {}, which {} without computing.", names,
                     without.size() == 1 ? "compares and moves" : "compare and move");
}

}  // namespace indexpool::reports
