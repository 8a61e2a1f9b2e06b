#include <algorithm>
#include <string>

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

// One curve per operation and one of their sum, all layers together. `at` has the operations at
// each of curve_tokens().
std::vector<reports::Curve> time_curves(const char* plot,
                                        const std::vector<std::vector<OperationForecast>>& at,
                                        std::int64_t layers) {
  const std::vector<std::int64_t> tokens = curve_tokens();
  std::vector<reports::Curve> curves = {{"all operations", plot, "seconds", {}, {}, {}, {}}};
  const auto add = [&](const std::string& name, std::size_t i, const Prediction& p) {
    auto found = std::find_if(curves.begin(), curves.end(),
                              [&](const reports::Curve& curve) { return curve.name == name; });
    if (found == curves.end()) {
      found = curves.insert(curves.end(), {name, plot, "seconds", {}, {}, {}, {}});
    }
    add_point(*found, tokens[i], p.time.value, p.low.value, p.high.value);
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool complete = std::all_of(at[i].begin(), at[i].end(), [](const auto& operation) {
      return operation.refusal.empty();
    });
    if (complete) add(curves.front().name, i, all_layers(at[i], layers));
    for (const OperationForecast& each : at[i]) {
      if (each.refusal.empty()) add(each.op, i, all_layers({each}, layers));
    }
  }
  return curves;
}

}  // namespace

std::vector<reports::Curve> context_curves(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device) {
  std::vector<reports::Curve> curves = {
      memory_curve("pooled indexer cache", indexer_cache_bytes, architecture),
      memory_curve("pooled, in whole pages", paged_cache_bytes, architecture),
      memory_curve("one key per token", unpooled_cache_bytes, architecture)};
  const std::vector<std::int64_t> tokens = curve_tokens();
  std::vector<std::vector<OperationForecast>> steps;
  steps.reserve(tokens.size());
  for (const std::int64_t at : tokens) steps.push_back(decode_step(architecture, device, at));
  const auto prompts = prefill(architecture, device, tokens);
  for (auto& curve : time_curves("time", steps, architecture.indexer_layers)) {
    curves.push_back(std::move(curve));
  }
  for (auto& curve : time_curves("prefill", prompts, architecture.indexer_layers)) {
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace indexpool::cli
