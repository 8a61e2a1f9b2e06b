#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

// Sequences back to back; in a batch each is padded on a seeded side.
std::vector<Sequence> lay_out(const Problem& problem, std::int64_t padded_length) {
  const Random random(problem.seed, 100);
  std::vector<Sequence> sequences;
  std::int64_t rows = 0;
  for (const std::int64_t length : problem.lengths) {
    const bool pad_left = random.coin(static_cast<std::int64_t>(sequences.size()));
    sequences.push_back({pad_left ? padded_length - length : 0, length, rows});
    rows = checked_sum(rows, length, "tokens of the batch");
  }
  return sequences;
}

IndexerInputs allocate(const Problem& problem, std::vector<Sequence> sequences) {
  const IndexerConfig& config = problem.indexer;
  IndexerInputs in;
  in.config = config;
  in.mode = numeric_mode(problem.mode);
  in.sequences = std::move(sequences);
  std::int64_t rows = 0;
  for (const Sequence& sequence : in.sequences) rows += sequence.length;
  const std::int64_t heads = config.index_n_heads, dim = config.index_head_dim;
  in.keys = Tensor(in.mode.storage, {rows, dim});
  in.gate_scores = Tensor(in.mode.storage, {rows, dim});
  in.ape = Tensor(DType::f32, {config.index_kpool, dim});
  in.queries = Tensor(in.mode.storage, {rows, heads, dim});
  in.head_weights = Tensor(DType::f32, {rows, heads});
  // head_dim^-0.5 from the dot product, n_heads^-0.5 from the head weights.
  in.logit_scale = 1 / std::sqrt(static_cast<double>(dim) * static_cast<double>(heads));
  return in;
}

}  // namespace

Case make_case(const Problem& problem) {
  validate(problem, "problem");
  if (problem.policy != shipped_policy) {
    throw ConfigError(fmt::format(
        "policy {} is no indexer: it has operands of its own, and kernels from elsewhere take the "
        "shipped form only",
        problem.policy));
  }
  if (!problem.attention.empty()) {
    throw ConfigError(fmt::format(
        "attention {} is no indexer: it has operands of its own, and kernels from elsewhere take "
        "the indexer only",
        problem.attention));
  }
  const Fill& fill = find_fill(problem.fill);
  const std::int64_t longest = *std::max_element(problem.lengths.begin(), problem.lengths.end());
  const auto batch = static_cast<std::int64_t>(problem.lengths.size());
  const auto extra = batch > 1 ? static_cast<std::int64_t>(problem.seed % 3) : 0;

  Case result;
  result.batch = batch;
  result.padded_length = checked_sum(longest, extra, "padded length");
  result.inputs = allocate(problem, lay_out(problem, result.padded_length));
  result.name = describe(problem);
  result.source = fmt::format("generated, fill {}, seed {}", problem.fill, problem.seed);
  result.prefill = problem.schedule.prefill_tokens < 0
                       ? result.padded_length
                       : std::min(problem.schedule.prefill_tokens, result.padded_length);
  Draw draw{result.inputs, problem.seed, {}};
  for (const Sequence& sequence : result.inputs.sequences) {
    for (std::int64_t i = 0; i < sequence.length; ++i) draw.position.push_back(i);
  }
  fill.fill(draw);
  return result;
}

}  // namespace indexpool::verify
