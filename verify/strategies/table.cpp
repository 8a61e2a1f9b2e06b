// One row a strategy; each names its variants and what they stand beside.
#include "indexpool/verify/strategies/strategies.hpp"

namespace indexpool::verify::strategies {
namespace {

std::vector<Variant> ratio_variants(const StreamOptions& stream) {
  std::vector<Variant> variants;
  for (const std::int64_t vectors : {2, 4, 8, 16}) {
    Variant variant{"1/" + std::to_string(vectors), "1/4", "gated", false, {}, {}, stream};
    variant.settings.ratio.vectors = vectors;
    if (vectors > 4) variant.name += ", announced";
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> frequency_variants(const StreamOptions& stream) {
  StreamOptions layered = stream;
  layered.layers = 2;
  std::vector<Variant> variants;
  for (const std::int64_t steps : {1, 3, 8}) {
    Variant variant{"every " + std::to_string(steps) + " steps",
                    "every layer",
                    "additive",
                    true,
                    {},
                    {},
                    layered};
    if (steps == 1) variant.name = "every step";
    variant.settings.frequency.steps = steps;
    variants.push_back(std::move(variant));
  }
  return variants;
}

// Shares of the keys' root mean square, which is about 1.2 in planted keys: our choice.
std::vector<Variant> incremental_variants(const StreamOptions& stream) {
  StreamOptions revised = stream;
  revised.small_chance = 0.02;
  revised.large_chance = 0.002;
  std::vector<Variant> variants;
  struct Row {
    const char *name, *policy;
    double threshold;
  };
  for (const Row& row : {Row{"fixed weights, over 0.2", "plain", 0.2},
                         Row{"gated, over 0.2", "gated", 0.2}, Row{"tfidf, any change", "tfidf", 0},
                         Row{"tfidf, over 0.2", "tfidf", 0.2}, Row{"tfidf, over 1", "tfidf", 1}}) {
    Variant variant{row.name, "every step", row.policy, false, {}, {}, revised};
    variant.settings.incremental.threshold = row.threshold;
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> precision_variants(const StreamOptions& stream) {
  struct Row {
    const char* name;
    PrecisionSettings precision;
  };
  const Row rows[] = {
      {"recent f16, old int8", {PrecisionRule::recent, DType::f16, DType::i8, 128}},
      {"recent bf16, old fp8", {PrecisionRule::recent, DType::bf16, DType::e4m3, 128}},
      {"large norms f16, others int8", {PrecisionRule::norm, DType::f16, DType::i8}},
      {"all int8", {PrecisionRule::all, DType::i8, DType::i8}}};
  std::vector<Variant> variants;
  for (const Row& row : rows) {
    Variant variant{row.name, "all f16", "gated", false, {}, {}, stream};
    variant.settings.precision = row.precision;
    variant.baseline.precision.wide = DType::f16;
    variants.push_back(std::move(variant));
  }
  return variants;
}

// Across the published length: half of the steps below, half above.
std::vector<Variant> short_variants(const StreamOptions& stream) {
  StreamOptions across = stream;
  across.steps = 16;
  across.tokens = published_short_length + across.steps / 2;
  across.sequences = std::max<std::int64_t>(2, stream.sequences / 4);
  Variant variant{"off below 10,000", "always on", "gated", false, {}, {}, across};
  variant.settings.shorts.below = published_short_length;
  return {variant};
}

std::vector<Variant> edge_variants(const StreamOptions& stream) {
  const EdgeSettings rows[] = {{true, published_edge_tokens, 0},
                               {false, published_edge_tokens, 1},
                               {true, published_edge_tokens, 1}};
  const char* names[] = {"8-bit weights", "a step late", "8-bit weights, a step late"};
  std::vector<Variant> variants;
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    Variant variant{names[i], "f32 weights, at once", "tfidf", true, {}, {}, stream};
    variant.settings.edge = rows[i];
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> adaptive_variants(const StreamOptions& stream) {
  StreamOptions mixed = stream;
  mixed.calm_share = 0.5;
  Variant variant{"8:1, 4:1 or 2:1", "4:1", "gated", false, {}, {}, mixed};
  variant.settings.adaptive.on = true;
  return {variant};
}

std::vector<Variant> asynchronous_variants(const StreamOptions& stream) {
  std::vector<Variant> variants;
  for (const step::Phase phase : {step::Phase::decode, step::Phase::prefill}) {
    const bool decode = phase == step::Phase::decode;
    Variant variant{decode ? "second stream, decode" : "second stream, prefill",
                    "one stream",
                    "gated",
                    false,
                    {},
                    {},
                    stream};
    variant.settings.edge.late_steps = 1;
    variant.overlap = OverlapOptions{};
    variant.overlap->phase = phase;
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace

const std::vector<StrategyInfo>& strategies() {
  static const std::vector<StrategyInfo> table = {
      {"ratio", "C", "how many vectors become one", ratio_variants},
      {"frequency", "C", "in which layers and steps weights are computed anew", frequency_variants},
      {"incremental", "D", "which groups have changed enough to be pooled again",
       incremental_variants},
      {"precision", "A-D, next", "in which format a pool is stored, by age or norm",
       precision_variants},
      {"short", "B", "from which length on anything is pooled", short_variants},
      {"edge", "D", "weights of 8 bits, at most 512 K tokens, pools a step late", edge_variants},
      {"adaptive", "A-D, next", "how many tokens become one, by how much their keys vary",
       adaptive_variants},
      {"asynchronous", "C", "which stream pools while the layer goes on", asynchronous_variants}};
  return table;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyInfo& each : strategies()) names.emplace_back(each.name);
  return names;
}

}  // namespace indexpool::verify::strategies
