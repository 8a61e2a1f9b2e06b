#include "indexpool/model/config.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

void require_positive(std::int64_t value, const char* key, std::string_view where) {
  if (value < 1) {
    throw ConfigError(fmt::format("{}/{}: found {}, expected at least 1", where, key, value));
  }
}

// Levenshtein distance: insertions, deletions and substitutions cost one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void validate(const IndexerConfig& config, std::string_view where) {
  require_positive(config.index_n_heads, "index_n_heads", where);
  require_positive(config.index_head_dim, "index_head_dim", where);
  require_positive(config.index_topk, "index_topk", where);
  require_positive(config.index_kpool, "index_kpool", where);
  if (config.index_topk % config.index_kpool != 0) {
    throw ConfigError(fmt::format(
        "{}/index_kpool: {} does not divide index_topk {}; pools are selected whole, so "
        "index_topk must be a multiple of index_kpool (for example {})",
        where, config.index_kpool, config.index_topk,
        (config.index_topk / config.index_kpool + 1) * config.index_kpool));
  }
  try {
    // The largest products of one row: a query's elements in f32, a row of selected positions.
    checked_product(checked_product(config.index_n_heads, config.index_head_dim,
                                    "index_n_heads * index_head_dim"),
                    4, "index_n_heads * index_head_dim * 4 bytes");
    checked_product(checked_sum(config.index_topk, config.index_kpool, "index_topk + index_kpool"),
                    4, "(index_topk + index_kpool) * 4 bytes");
    checked_product(config.index_kpool, config.index_head_dim, "index_kpool * index_head_dim");
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", where, error.what()));
  }
}

const std::vector<NumericMode>& numeric_modes() {
  using enum DType;
  using enum PoolRounding;
  static const std::vector<NumericMode> modes = {
      // transformers: re-pools in the model's dtype, no rotation, nothing quantised.
      {"hf_f32", f32, storage_products, f32, false, f32, ScaleRule::none},
      {"hf_bf16", bf16, storage_products, bf16, false, bf16, ScaleRule::none},
      {"hf_f16", f16, storage_products, f16, false, f16, ScaleRule::none},
      // vLLM on Ascend: pooled keys stay bf16.
      {"bf16", bf16, f32_accumulate, bf16, false, bf16, ScaleRule::none},
      // vLLM and DeepSeek-V3.2: scales are powers of two. SGLang without scale_fmt: amax / 448.
      {"vllm_fp8", bf16, f32_accumulate, bf16, true, e4m3, ScaleRule::power_of_two},
      {"sglang_fp8", bf16, f32_accumulate, bf16, true, e4m3, ScaleRule::amax},
      // Symmetric int8 for devices without FP8 units: amax / 127.
      {"int8", bf16, f32_accumulate, bf16, true, i8, ScaleRule::amax},
  };
  return modes;
}

const NumericMode& numeric_mode(std::string_view name) {
  std::vector<std::string> names;
  for (const NumericMode& mode : numeric_modes()) {
    if (mode.name == name) return mode;
    names.push_back(mode.name);
  }
  throw ConfigError(fmt::format("unknown numeric mode \"{}\"{} (known: {})", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

// Near: the candidate contains the name ("a100" for "a100-sxm4-80gb"), or at most a third of the
// longer text, two characters at least, has to change.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t most = 3;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t limit = std::max<std::size_t>(2, std::max(name.size(), candidate.size()) / 3);
    const bool contained = !name.empty() && candidate.find(name) != std::string::npos;
    if (contained || distance <= limit) {
      by_distance.emplace_back(contained ? 0 : distance, candidate);
    }
  }
  // Ties keep the order of `known`.
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (const auto& [distance, candidate] : by_distance) {
    if (nearest.size() < most) nearest.push_back(candidate);
  }
  return nearest;
}

}  // namespace indexpool
