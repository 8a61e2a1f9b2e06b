#include "indexpool/reports/cli/worked_pages.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/policy.hpp"
#include "indexpool/model/pooling.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::Attachment;
using reports::Cell;

Cell number(double value, int digits) { return {fmt::format("{:.{}f}", value, digits), value}; }
Cell share(double part) { return {fmt::format("{:.0f} %", 100 * part), part}; }

// --- composite: what is kept ---
struct Kept {
  const char* what;
  std::int64_t vectors;  // of d channels, per token and head
};

Attachment memory_of_composite(std::int64_t tokens) {
  const PolicyInfo& policy = find_policy("composite");
  const std::int64_t all = policy.index_kpool;
  const Kept rows[] = {
      {"Q, K, V and O", all},
      {"C alone, as claimed", 1},
      {"C and V: out = softmax((W_q C) (W_k C)^T / sqrt(d)) V takes the V of every token", 2}};
  Attachment page{"composite-memory",
                  "Form A, worked: what its cache must hold",
                  fmt::format("{} heads of {} channels, {} tokens, one layer. The pooled vector "
                              "replaces keys and queries, not values: the attention formula of the "
                              "form reads the original V, so half of the four vectors stays.",
                              policy.heads, policy.head_dim, tokens),
                  {{{"stored", "stored"},
                    {"vectors", "vectors per token and head", true},
                    {"bytes_8bit", "at 1 byte a channel", true},
                    {"bytes_16bit", "at 2 bytes", true},
                    {"share", "of the four", true}},
                   {}}};
  for (const Kept& kept : rows) {
    const double channels = static_cast<double>(tokens * policy.heads * policy.head_dim) *
                            static_cast<double>(kept.vectors);
    page.table.rows.push_back(
        {Cell(kept.what), Cell(std::to_string(kept.vectors), kept.vectors),
         Cell(reports::format_bytes(channels), channels),
         Cell(reports::format_bytes(2 * channels), 2 * channels),
         share(static_cast<double>(kept.vectors) / static_cast<double>(all))});
  }
  return page;
}

// --- composite: the sketch ---
Attachment sketch_of_composite() {
  constexpr std::int64_t roles = 4;
  Attachment page{
      "composite-sketch",
      "Form A, worked: its published sketch",
      "The sketch does not run: the labels of its einsum do not name the axes of the tensor it "
      "views, and one attribute is read that nothing sets. Mended as written, pool_matrix "
      "[heads, 4, pool_ratio] gives pool_ratio vectors for four: the larger the ratio, the less is "
      "saved, and 4:1 saves nothing. Read as the text means it, four roles become 4 / ratio "
      "vectors; that is what runs here (composite, composite_half).",
      {{{"pool_ratio", "pool_ratio", true},
        {"sketch_vectors", "vectors out, sketch", true},
        {"sketch_share", "stored, sketch", true},
        {"read_vectors", "vectors out, text", true},
        {"read_share", "stored, text", true}},
       {}}};
  for (const std::int64_t ratio : {1, 2, 4}) {
    const auto part = [](std::int64_t vectors) {
      return share(static_cast<double>(vectors) / static_cast<double>(roles));
    };
    page.table.rows.push_back(
        {Cell(std::to_string(ratio), ratio), Cell(std::to_string(ratio), ratio), part(ratio),
         Cell(std::to_string(roles / ratio), roles / ratio), part(roles / ratio)});
  }
  return page;
}

// --- additive: the sign of the content term ---
// Two vectors of length 1: one along the query, one opposite, both long unused and far away, the
// second somewhat nearer.
PoolingInputs opposite_vectors(double nearer, bool raw) {
  constexpr std::int64_t dim = 32;
  PoolingInputs in;
  in.policy = raw ? "additive_raw" : "additive";
  in.mode = pooling_mode("f32");
  in.index_kpool = 2;
  in.head_dim = dim;
  in.groups = {{0, 0, 0}};
  in.offsets = {0, 1};
  in.vectors = Tensor(DType::f32, {2, dim});
  in.vectors.set(0, 1);
  in.vectors.set(dim, -1);
  AdditiveTerms terms;
  terms.queries = Tensor(DType::f32, {1, dim});
  terms.queries.set(0, 1);
  terms.distances = Tensor(DType::f32, {1, 2});
  terms.distances.set(0, 100);
  terms.distances.set(1, nearer);
  terms.ages = Tensor(DType::f32, {1, 2});
  for (std::int64_t i = 0; i < 2; ++i) terms.ages.set(i, 1000);
  terms.raw_cosine = raw;
  in.weights = terms;
  return in;
}

struct Pooled {
  double first = 0, second = 0, value = 0;
};
Pooled pooled(double nearer, bool raw) {
  const PoolingInputs inputs = opposite_vectors(nearer, raw);
  const reference::Bounded weights = reference::pool_weights(inputs);
  std::vector<float> stored;
  for (const double w : weights.value) stored.push_back(static_cast<float>(w));
  return {weights.value[0], weights.value[1], reference::pool(inputs, stored).before.value[0]};
}

Attachment signs_of_additive() {
  Attachment page{
      "additive-sign",
      "Form B, worked: a cosine may be negative",
      "Two vectors of length 1, one along the query (channel 0 is +1), one opposite (-1), both "
      "long "
      "unused; the opposite one comes nearer from row to row. With the cosine as published its "
      "weight is negative: the pooled channel leaves [-1, 1], without limit where the weights' sum "
      "passes zero. With (1 + cos) / 2 it stays inside; that is the reading of policy additive, "
      "additive_raw is the published one.",
      {{{"distance", "distance", true},
        {"raw_first", "w1, cos", true},
        {"raw_second", "w2, cos", true},
        {"raw_sum", "sum", true},
        {"raw_pooled", "pooled, cos", true},
        {"first", "w1, (1 + cos) / 2", true},
        {"second", "w2", true},
        {"pooled", "pooled", true}},
       {}}};
  for (const double distance : {10.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0}) {
    const Pooled raw = pooled(distance, true), read = pooled(distance, false);
    page.table.rows.push_back({number(distance, 0), number(raw.first, 4), number(raw.second, 4),
                               number(raw.first + raw.second, 6), number(raw.value, 2),
                               number(read.first, 4), number(read.second, 4),
                               number(read.value, 4)});
  }
  return page;
}

}  // namespace

std::vector<Attachment> worked_pages(std::string_view policy, std::int64_t tokens) {
  if (policy.starts_with("composite")) return {memory_of_composite(tokens), sketch_of_composite()};
  if (policy.starts_with("additive")) return {signs_of_additive()};
  return {};
}

}  // namespace indexpool::cli
