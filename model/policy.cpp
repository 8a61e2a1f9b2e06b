#include "indexpool/model/policy.hpp"

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

std::string_view to_string(Grouping grouping) {
  switch (grouping) {
    case Grouping::roles:
      return "vectors of one token and head";
    case Grouping::neighbours:
      return "consecutive tokens";
    case Grouping::windows:
      return "two overlapping windows of tokens";
    case Grouping::scores:
      return "scores of consecutive tokens";
  }
  throw InternalError("a Grouping outside its enumeration");
}

std::string_view to_string(Normalisation normalisation) {
  switch (normalisation) {
    case Normalisation::none:
      return "none";
    case Normalisation::softmax:
      return "softmax";
    case Normalisation::division:
      return "division";
  }
  throw InternalError("a Normalisation outside its enumeration");
}

const std::vector<PolicyInfo>& policies() {
  using enum Grouping;
  using enum WeightRule;
  using enum Normalisation;
  static const std::vector<PolicyInfo> rows = {
      {"kpool", "GLM-5.3-Flash",
       "per channel, softmax over the tokens of gate score + position bias", neighbours,
       channel_softmax, softmax, 4, 128, 1, 1, true},
      {"kpool_weights", "GLM-5.3-Flash",
       "as kpool, in two kernels: weights, then the pooling that all forms share", neighbours,
       channel_softmax, softmax, 4, 128, 1, 1, true},
      {"composite", "A", "softmax over Q, K, V, O of a learnable matrix per head", roles,
       role_softmax, softmax, 4, 64, 8, 1, true},
      {"composite_half", "A", "as composite, two pooled vectors instead of one (ratio 2)", roles,
       role_softmax, softmax, 4, 64, 8, 2, true},
      {"composite_fixed", "A", "0.4 Q + 0.3 K + 0.2 V + 0.1 O: the first training stage", roles,
       given, none, 4, 64, 8},
      {"additive", "B", "0.5 position + 0.3 (1 + cos) / 2 + 0.2 age, over their sum", neighbours,
       additive, division, 4, 128, 1, 1, true},
      {"additive_raw", "B", "0.5 position + 0.3 cos + 0.2 age, over their sum", neighbours,
       additive, division, 4, 128, 1, 1, true, true, false, true,
       "a cosine may be negative, and with it a weight: the pooled vector leaves the range of its "
       "vectors, without limit where the weights' sum passes zero"},
      {"gated", "C", "sigmoid(W [h; V_i] + b), over their sum", roles, gated, division, 4, 64, 8, 1,
       true, true, true, false, "the gate sees the vectors: scaled vectors get other weights"},
      {"tfidf", "D", "tf idf + position term + (1 + cos) / 2, over their sum", roles, tfidf,
       division, 4, 2048, 1, 1, true},
      {"plain", "E", "sum of given weights that add up to 1", neighbours, given, none, 4, 128, 1},
      {"plain_raw", "E", "sum of given weights as they come", neighbours, given, none, 4, 128, 1, 1,
       false, false, false, true,
       "nothing normalises the weights: their sum is the caller's affair"},
      {"csa", "DeepSeek-V4",
       "per channel, softmax over 8 rows of two series, then RMSNorm and a rotation", windows,
       channel_softmax, softmax, 8, 128, 1, 1, true, true, false, false,
       "RMSNorm sets the length of the pooled vector, whatever that of its rows"},
      {"mean", "Qwen4", "equal weights", neighbours, given, none, 4, 128, 1},
      {"last", "", "the last vector of each group", neighbours, given, none, 4, 128, 1},
      {"block_max", "MiniMax-M3", "the largest score of a block of tokens; keys are not pooled",
       scores, maximum, none, 128, 128, 1},
  };
  return rows;
}

const PolicyInfo& find_policy(std::string_view name) {
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == name) return policy;
  }
  const std::vector<std::string> names = policy_names();
  throw ConfigError(fmt::format("unknown policy \"{}\"{} (known: {})", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : policies()) names.emplace_back(policy.name);
  return names;
}

const std::vector<NumericMode>& pooling_modes() {
  using enum DType;
  using enum PoolRounding;
  static const std::vector<NumericMode> modes = {
      {"f32", f32, f32_accumulate, f32, false, f32, ScaleRule::none},
      {"f16", f16, f32_accumulate, f16, false, f16, ScaleRule::none},
      {"bf16", bf16, f32_accumulate, bf16, false, bf16, ScaleRule::none},
      {"fp8", bf16, f32_accumulate, f32, false, e4m3, ScaleRule::power_of_two},
      {"fp8_amax", bf16, f32_accumulate, f32, false, e4m3, ScaleRule::amax},
      {"int8", bf16, f32_accumulate, f32, false, i8, ScaleRule::amax},
  };
  return modes;
}

const NumericMode& pooling_mode(std::string_view name) {
  std::vector<std::string> names;
  for (const NumericMode& mode : pooling_modes()) {
    if (mode.name == name) return mode;
    names.push_back(mode.name);
  }
  throw ConfigError(fmt::format("unknown numeric mode \"{}\"{} (known for published forms: {})",
                                name, did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace indexpool
