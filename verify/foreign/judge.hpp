// How outputs of a foreign kernel are judged, operation by operation. Internal to the layer.
#pragma once

#include <optional>
#include <vector>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/foreign/adapters.hpp"
#include "indexpool/verify/foreign/foreign.hpp"

namespace indexpool::verify {

inline constexpr Op judged_operations[] = {Op::pool, Op::quantize_query, Op::logits, Op::topk};

NumericMode mode_of(const ForeignContract& contract, const ForeignCase& foreign);

// What an operation said: its checks, or why there are none.
struct Judged {
  std::vector<Check> checks;
  std::string missing;  // not empty: nothing came back for it
  std::int64_t rows = 0, decidable_rows = 0;
};

// Everything the four judges share. `inputs` are the case's with the contract's numeric mode.
struct ForeignTrial {
  const ForeignCase& foreign;
  const ForeignOutputs& outputs;
  const ForeignContract& contract;
  IndexerInputs inputs;

  const Tensor* find(std::string_view name) const;
  // The adapter whose tensors came back; null: none did.
  const CacheAdapter* cache() const;
};

Judged judge_pools(const ForeignTrial& trial);
Judged judge_queries(const ForeignTrial& trial);
Judged judge_logits(const ForeignTrial& trial);
Judged judge_selection(const ForeignTrial& trial);

// Enclosures of the logits: from the operands that came back, where they are all numbers, and from
// the reference's enclosures of them where not.
struct ForeignLogitBounds {
  LogitBounds bounds;
  StoredPools pools;   // raw bytes: equal ones mean equal pools
  std::string source;  // "stored pools, reference queries"
};
ForeignLogitBounds foreign_logit_bounds(const ForeignTrial& trial);

// Row-major copy of the first `width` columns of a [rows, >= width] tensor of f32.
std::vector<float> logits_of(const Tensor& tensor);

}  // namespace indexpool::verify
