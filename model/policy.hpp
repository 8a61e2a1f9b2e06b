// The published forms of pooling, one row each: what is pooled, with which weights, and which
// properties hold by design. Notation: V_i the vectors of a group, i < index_kpool; w_i their pool
// weights; C the pooled vector.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool {

// What a group is made of.
enum class Grouping {
  roles,       // index_kpool vectors of one token and head (Q, K, V, O): tokens * heads groups
  neighbours,  // index_kpool consecutive tokens of a sequence; a tail is not pooled
  windows,     // index_kpool / 2 tokens by their second series, and as many before by their first
  scores       // logits of index_kpool consecutive tokens; the last group may be shorter
};
// Where the pool weights come from.
enum class WeightRule {
  given,            // an operand
  role_softmax,     // softmax over a learnable matrix, one row per head
  additive,         // position + content + age
  gated,            // sigmoid of hidden state and vector
  tfidf,            // access statistics + position + content
  channel_softmax,  // per channel, gate scores + position bias
  maximum           // none: the largest score
};
enum class Normalisation { none, softmax, division };
std::string_view to_string(Grouping grouping);
std::string_view to_string(Normalisation normalisation);

inline constexpr std::int64_t most_pooled_vectors = 16;  // of a group, but for scores

struct PolicyInfo {
  std::string_view name;
  std::string_view published;  // article "A" to "E", or the model that ships it
  std::string_view formula;
  Grouping grouping = Grouping::neighbours;
  WeightRule rule = WeightRule::given;
  Normalisation normalisation = Normalisation::none;
  std::int64_t index_kpool = 4, head_dim = 128, heads = 1;  // as published
  std::int64_t outputs = 1;  // pooled vectors of a group, each with weights of its own
  bool learnable = false;
  // By design, up to rounding: the effective weights sum to 1; C lies between the smallest and the
  // largest V_i, channel by channel; scaling all V_i scales C.
  bool sums_to_one = true, convex = true, scales = true;
  std::string_view exception = {};  // why a property does not hold; empty when all do
};
// "kpool" (shipped) first.
const std::vector<PolicyInfo>& policies();
const PolicyInfo& find_policy(std::string_view name);  // ConfigError with near names
std::vector<std::string> policy_names();

// Numeric modes of the published forms: f32, f16, bf16; fp8 (scale a power of two), fp8_amax, int8.
// Sums in f32; no rotation; what is quantised is the f32 result itself.
const std::vector<NumericMode>& pooling_modes();
const NumericMode& pooling_mode(std::string_view name);  // ConfigError with near names

}  // namespace indexpool
