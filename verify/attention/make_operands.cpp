// Operands of the layers of attention, from a seed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <variant>

#include "indexpool/model/attention_layer.hpp"
#include "indexpool/verify/attention/attention.hpp"
#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::attention {

Drawn drawn(const Problem& problem, std::uint64_t draw) {
  const std::int64_t heads = problem.indexer.index_n_heads, dim = problem.indexer.index_head_dim;
  const NumericMode& mode = attention_mode(problem.mode);
  const std::int64_t rows = all_tokens(problem) * heads;
  IndexerInputs in;
  in.config = problem.indexer;
  in.config.index_n_heads = 1;
  in.mode = mode;
  in.sequences = {{0, rows, 0}};
  in.keys = Tensor(mode.storage, {rows, dim});
  in.gate_scores = Tensor(mode.storage, {rows, dim});
  in.ape = Tensor(DType::f32, {problem.indexer.index_kpool, dim});
  in.queries = Tensor(mode.storage, {rows, 1, dim});
  in.head_weights = Tensor(DType::f32, {rows, 1});
  Draw to{in, draw == 0 ? problem.seed : mix(problem.seed + draw), {}};
  for (const std::int64_t length : problem.lengths) {
    for (std::int64_t i = 0; i < length * heads; ++i) to.position.push_back(i / heads);
  }
  find_fill(problem.fill).fill(to);
  const auto of_heads = [&](const Tensor& flat) {
    Tensor tensor(mode.storage, {all_tokens(problem), heads, dim});
    if (!flat.empty())
      std::memcpy(tensor.data(), flat.data(), static_cast<std::size_t>(flat.bytes().value));
    return tensor;
  };
  return {of_heads(in.keys), of_heads(in.queries), of_heads(in.gate_scores)};
}

std::int64_t all_tokens(const Problem& problem) {
  return std::accumulate(problem.lengths.begin(), problem.lengths.end(), std::int64_t{0});
}

std::int64_t key_heads_of(std::int64_t heads) { return heads % 2 == 0 ? heads / 2 : 1; }

namespace {

// The first heads of each row.
Tensor first_heads(const Tensor& tensor, std::int64_t heads) {
  const std::int64_t rows = tensor.dim(0), all = tensor.dim(1), dim = tensor.dim(2);
  return filled(tensor.dtype(), {rows, heads, dim}, [&](std::int64_t i) {
    return tensor.at(i / (heads * dim) * all * dim + i % (heads * dim));
  });
}

// Tokens of one query at `position`, the first token of its sequence being `first`: random pools it
// sees, whole and in random order, then the tail.
std::vector<std::int32_t> selected(const Problem& problem, const Random& random, std::int64_t first,
                                   std::int64_t position) {
  const IndexerConfig& indexer = problem.indexer;
  const std::int64_t kpool = indexer.index_kpool, visible = (position + 1) / kpool;
  std::vector<std::int64_t> pools(static_cast<std::size_t>(visible));
  std::iota(pools.begin(), pools.end(), 0);
  std::vector<std::int32_t> tokens;
  const std::int64_t taken = std::min(indexer.index_topk / kpool, visible);
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t other = random.integer(i, i, visible - 1);
    std::swap(pools[static_cast<std::size_t>(i)], pools[static_cast<std::size_t>(other)]);
    for (std::int64_t t = 0; t < kpool; ++t)
      tokens.push_back(
          static_cast<std::int32_t>(first + pools[static_cast<std::size_t>(i)] * kpool + t));
  }
  for (std::int64_t t = visible * kpool; indexer.index_kpool_always_select_tail && t <= position;
       ++t)
    tokens.push_back(static_cast<std::int32_t>(first + t));
  return tokens;
}

Tensor selection(const Problem& problem) {
  const std::int64_t width = problem.indexer.selection_width();
  Tensor all(DType::i32, {all_tokens(problem), width});
  const auto places = all.as<std::int32_t>();
  std::fill(places.begin(), places.end(), -1);
  std::int64_t first = 0;
  for (const std::int64_t length : problem.lengths) {
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t row = first + i;
      if (i % 16 == 1) continue;  // no pool and no tail: nothing to attend to
      const Random random(mix(problem.seed + selection_stream), static_cast<std::uint64_t>(row));
      const auto tokens = selected(problem, random, first, i);
      std::copy(tokens.begin(), tokens.end(), places.begin() + row * width);
    }
    first += length;
  }
  return all;
}

// Most gates mix; some are beyond saturation, on either side.
double gate_logit(const Random& random, std::int64_t i) {
  const std::int64_t kind = i == 0 ? 15 : random.integer(i, 0, 15);
  if (kind == 0) return gate_saturation + 1;
  if (kind == 1) return -gate_saturation - 1;
  return 2 * random.normal(i);
}

SafeGateInputs safe_gate_of(const Problem& problem, const Tensor& features) {
  const std::int64_t heads = features.dim(1), dim = features.dim(2);
  const Random steepness(problem.seed, a_log_stream), bias(problem.seed, dt_bias_stream);
  return {features,
          filled(DType::f32, {heads}, [&](std::int64_t h) { return steepness.normal(h) / 2; }),
          // Around sigmoid(-2): decays of some tens of tokens beside some of a few.
          filled(DType::f32, {heads, dim}, [&](std::int64_t i) { return bias.normal(i) - 2; })};
}

LinearBatch linear_of(const Problem& problem, const Drawn& qk, const Tensor& values) {
  const std::int64_t heads = values.dim(1), dim = values.dim(2), tokens = values.dim(0);
  const Random beta(problem.seed, beta_stream), state(problem.seed, state_stream);
  const auto sequences = static_cast<std::int64_t>(problem.lengths.size());
  const std::int64_t size = heads * dim * dim;
  LinearBatch batch;
  batch.lengths = problem.lengths;
  batch.rows.queries = qk.queries;
  batch.rows.keys = qk.keys;
  batch.rows.values = values;
  batch.rows.log_decay = Tensor(DType::f32, values.shape());
  batch.rows.beta =
      filled(DType::f32, {tokens, heads}, [&](std::int64_t i) { return beta.uniform(i); });
  batch.rows.state = Tensor(DType::f32, {heads, dim, dim});
  batch.rows.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  // Every third sequence begins fresh, the others go on from a state.
  batch.states = filled(DType::f32, {sequences, heads, dim, dim}, [&](std::int64_t i) {
    return i / size % 3 == 2 ? 0 : state.normal(i) / 2;
  });
  return batch;
}

}  // namespace

HybridInputs make_hybrid(const Problem& problem) {
  indexpool::validate(problem, "problem");
  const std::int64_t heads = problem.indexer.index_n_heads;
  const Drawn linear = drawn(problem, 0), sparse = drawn(problem, 2);
  const Tensor values = drawn(problem, 1).keys, sparse_values = drawn(problem, 3).keys;
  HybridInputs in;
  in.gate = safe_gate_of(problem, linear.gate_scores);
  in.linear = linear_of(problem, linear, values);
  in.sparse = {sparse.queries, first_heads(sparse.keys, key_heads_of(heads)),
               first_heads(sparse_values, key_heads_of(heads)), selection(problem),
               in.linear.rows.scale};
  const Random gate(problem.seed, gate_stream);
  in.fusion.gate_logits = filled(DType::f32, {all_tokens(problem), heads},
                                 [&](std::int64_t i) { return gate_logit(gate, i); });
  in.fusion.a = in.fusion.b = Tensor(DType::f32, values.shape());
  return in;
}

std::vector<CompositeAttentionInputs> make_composite(const Problem& problem) {
  indexpool::validate(problem, "problem");
  const std::int64_t heads = problem.indexer.index_n_heads, dim = problem.indexer.index_head_dim;
  const DType storage = attention_mode(problem.mode).storage;
  const double spread = 1 / std::sqrt(static_cast<double>(dim));
  const auto weight = [&](std::uint64_t stream) {
    const Random random(problem.seed, stream);
    return filled(storage, {heads, dim, dim},
                  [&](std::int64_t i) { return spread * random.normal(i); });
  };
  const Tensor composites = drawn(problem, 0).keys, values = drawn(problem, 1).keys;
  const Tensor query_weight = weight(query_weight_stream), key_weight = weight(key_weight_stream);
  std::vector<CompositeAttentionInputs> sequences;
  std::int64_t first = 0;
  const std::int64_t row = heads * dim;
  for (const std::int64_t length : problem.lengths) {
    const auto part = [&](const Tensor& whole) {
      return filled(storage, {length, heads, dim},
                    [&](std::int64_t i) { return whole.at(first * row + i); });
    };
    if (length > 0) sequences.push_back({part(composites), query_weight, key_weight, part(values)});
    first += length;
  }
  return sequences;
}

FeedbackOperands make_feedback(const Problem& problem) {
  indexpool::validate(problem, "problem");
  Problem of_tfidf = problem;
  of_tfidf.attention.clear();
  of_tfidf.policy = "tfidf";
  FeedbackOperands operands{policy::make_inputs(of_tfidf), {}};
  const Shape shape = operands.terms().accesses.shape();
  const std::int64_t slots = operands.terms().accesses.size();
  const Random mass(problem.seed, mass_stream), attended(problem.seed, attended_stream),
      token(problem.seed, token_stream);
  // One slot in four gets no attention; the others a softmax of normal scores.
  std::vector<double> share(static_cast<std::size_t>(slots));
  double sum = 0;
  for (std::int64_t i = 0; i < slots; ++i) {
    if (attended.integer(i, 0, 3) == 0) continue;
    share[static_cast<std::size_t>(i)] = std::exp2(2 * mass.normal(i));
    sum += share[static_cast<std::size_t>(i)];
  }
  operands.step.attention_mass = filled(DType::f32, shape, [&](std::int64_t i) {
    return sum > 0 ? share[static_cast<std::size_t>(i)] / sum : 0;
  });
  // Some counts are as large as they get.
  const auto accesses = std::get<AccessTerms>(operands.pooling.weights).accesses.as<std::int32_t>();
  for (std::int64_t i = 0; i < slots; ++i) {
    if (attended.integer(i, 0, 31) == 1) accesses[static_cast<std::size_t>(i)] = most_accesses;
  }
  // A token comes up several times, within a group and in others.
  const std::int64_t vocabulary = std::max<std::int64_t>(1, slots / 3);
  operands.step.tokens = filled(DType::i32, shape, [&](std::int64_t i) {
    return static_cast<double>(token.integer(i, 0, vocabulary - 1));
  });
  return operands;
}

}  // namespace indexpool::verify::attention
