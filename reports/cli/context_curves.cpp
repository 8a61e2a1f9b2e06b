#include <algorithm>
#include <map>

#include "indexpool/reports/cli/forecast.hpp"

namespace indexpool::cli {
namespace {

// 4K, 8K, ..., 8M, 10M tokens.
std::vector<std::int64_t> curve_tokens() {
  constexpr std::int64_t last = 10 << 20;
  std::vector<std::int64_t> tokens;
  for (std::int64_t at = 4 << 10; at < last; at *= 2) tokens.push_back(at);
  tokens.push_back(last);
  return tokens;
}

void add_point(reports::Curve& curve, std::int64_t tokens, double value, double low, double high) {
  curve.tokens.push_back(static_cast<double>(tokens));
  curve.value.push_back(value);
  curve.low.push_back(low);
  curve.high.push_back(high);
}

reports::Curve memory_curve(const char* name,
                            Bytes (*bytes)(const ArchitectureConfig&, std::int64_t),
                            const ArchitectureConfig& architecture) {
  reports::Curve curve{name, "memory", "bytes", {}, {}, {}, {}};
  for (const std::int64_t tokens : curve_tokens()) {
    const auto value = static_cast<double>(bytes(architecture, tokens).value);
    add_point(curve, tokens, value, value, value);
  }
  return curve;
}

using Forecast = std::vector<OperationForecast> (*)(const ArchitectureConfig&, const DeviceSpec&,
                                                    std::int64_t);

// One curve per operation and one of their sum, all layers together.
std::vector<reports::Curve> time_curves(const char* plot, Forecast operations,
                                        const ArchitectureConfig& architecture,
                                        const DeviceSpec& device) {
  std::vector<reports::Curve> curves = {{"all operations", plot, "seconds", {}, {}, {}, {}}};
  const auto point = [](reports::Curve& curve, std::int64_t tokens, const Prediction& p) {
    add_point(curve, tokens, p.time.value, p.low.value, p.high.value);
  };
  for (const std::int64_t tokens : curve_tokens()) {
    const auto step = operations(architecture, device, tokens);
    const bool complete = std::all_of(step.begin(), step.end(), [](const OperationForecast& each) {
      return each.refusal.empty();
    });
    if (complete) point(curves.front(), tokens, all_layers(step, architecture.indexer_layers));
    for (const OperationForecast& each : step) {
      if (!each.refusal.empty()) continue;
      auto found = std::find_if(curves.begin(), curves.end(),
                                [&](const reports::Curve& c) { return c.name == each.op; });
      if (found == curves.end()) {
        found = curves.insert(curves.end(), {each.op, plot, "seconds", {}, {}, {}, {}});
      }
      point(*found, tokens, all_layers({each}, architecture.indexer_layers));
    }
  }
  return curves;
}

}  // namespace

std::vector<reports::Curve> context_curves(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device) {
  std::vector<reports::Curve> curves = {
      memory_curve("indexer cache, pooled", indexer_cache_bytes, architecture),
      memory_curve("in whole pages", paged_cache_bytes, architecture),
      memory_curve("one key per token", unpooled_cache_bytes, architecture)};
  for (auto& curve : time_curves("time", decode_step, architecture, device)) {
    curves.push_back(std::move(curve));
  }
  for (auto& curve : time_curves("prefill", prefill, architecture, device)) {
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace indexpool::cli
