// Operands of the published forms, from a seed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::policy {
namespace {

// Beside the streams of fill.hpp.
constexpr std::uint64_t hidden_stream = 200, gate_weight_stream = 201, gate_bias_stream = 202,
                        matrix_stream = 203, given_stream = 204, age_stream = 205,
                        distance_stream = 206, access_stream = 207, groups_stream = 208,
                        norm_stream = 209, scores_stream = 210, kinds_stream = 211;

// Rows of vectors, and which of them belong together.
struct Layout {
  std::vector<VectorGroup> groups;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> query_row;  // of each group: that of its last vector
  std::int64_t rows = 0;
};

Layout roles(const Problem& problem, const PolicyInfo& policy) {
  Layout layout;
  const std::int64_t m = problem.indexer.index_kpool, heads = problem.indexer.index_n_heads;
  for (const std::int64_t length : problem.lengths) {
    for (std::int64_t i = 0; i < length * heads; ++i) {
      for (std::int64_t output = 0; output < policy.outputs; ++output) {
        const std::int64_t set = i % heads * policy.outputs + output;
        layout.groups.push_back({layout.rows, static_cast<std::int32_t>(set), 0});
        layout.query_row.push_back(layout.rows + m - 1);
      }
      layout.rows += m;
    }
  }
  for (std::int64_t i = 0; i < m; ++i) layout.offsets.push_back(i);
  return layout;
}

Layout neighbours(const Problem& problem) {
  Layout layout;
  const std::int64_t m = problem.indexer.index_kpool;
  for (const std::int64_t length : problem.lengths) {
    for (std::int64_t p = 0; p < length / m; ++p) {
      layout.groups.push_back({layout.rows + p * m, 0, 0});
      layout.query_row.push_back(layout.rows + p * m + m - 1);
    }
    layout.rows += length;
  }
  for (std::int64_t i = 0; i < m; ++i) layout.offsets.push_back(i);
  return layout;
}

// Token t has rows 2 t (first series) and 2 t + 1 (second); the window before the first one of a
// sequence does not exist.
Layout windows(const Problem& problem) {
  Layout layout;
  const std::int64_t m = problem.indexer.index_kpool, window = m / 2;
  for (const std::int64_t length : problem.lengths) {
    for (std::int64_t p = 0; p < length / window; ++p) {
      const std::int64_t before = layout.rows + 2 * window * (p - 1);
      layout.groups.push_back({before, 0, p == 0 ? static_cast<std::int32_t>(window) : 0});
      layout.query_row.push_back(before + 2 * (m - 1) + 1);
    }
    layout.rows += 2 * length;
  }
  for (std::int64_t i = 0; i < m; ++i) layout.offsets.push_back(2 * i + (i < window ? 0 : 1));
  return layout;
}

Layout lay_out(const Problem& problem, const PolicyInfo& policy) {
  Layout layout = policy.grouping == Grouping::roles     ? roles(problem, policy)
                  : policy.grouping == Grouping::windows ? windows(problem)
                                                         : neighbours(problem);
  // Weights that are made for a group are its own.
  const bool shared = policy.rule == WeightRule::role_softmax || policy.name == "composite_fixed";
  for (std::size_t g = 0; g < layout.groups.size() && !shared; ++g) {
    layout.groups[g].weight_set = static_cast<std::int32_t>(g);
  }
  return layout;
}

// What the fills know how to draw: a row of "keys" for each vector.
IndexerInputs drawn(const Problem& problem, const NumericMode& mode, std::int64_t rows) {
  const std::int64_t dim = problem.indexer.index_head_dim, m = problem.indexer.index_kpool;
  IndexerInputs in;
  in.config = problem.indexer;
  in.config.index_n_heads = 1;
  in.mode = mode;
  in.sequences = {{0, rows, 0}};
  in.keys = Tensor(mode.storage, {rows, dim});
  in.gate_scores = Tensor(mode.storage, {rows, dim});
  in.ape = Tensor(DType::f32, {m, dim});
  in.queries = Tensor(mode.storage, {rows, 1, dim});
  in.head_weights = Tensor(DType::f32, {rows, 1});
  Draw draw{in, problem.seed, {}};
  for (std::int64_t i = 0; i < rows; ++i) draw.position.push_back(i);
  find_fill(problem.fill).fill(draw);
  return in;
}

template <class Value>
Tensor table(DType dtype, std::int64_t rows, std::int64_t columns, const Value& value) {
  Tensor tensor(dtype, {rows, columns});
  set_rows(tensor, value);
  return tensor;
}

struct Maker {
  const Problem& problem;
  const NumericMode& mode;
  const Layout& layout;
  const IndexerInputs& drawn;

  std::int64_t groups() const { return static_cast<std::int64_t>(layout.groups.size()); }
  std::int64_t m() const { return problem.indexer.index_kpool; }
  std::int64_t dim() const { return problem.indexer.index_head_dim; }
  std::int64_t heads() const { return problem.indexer.index_n_heads; }
  Random random(std::uint64_t stream) const { return {problem.seed, stream}; }

  Tensor queries() const {
    Tensor queries(mode.storage, {groups(), dim()});
    for (std::int64_t g = 0; g < groups(); ++g) {
      const std::int64_t row = layout.query_row[static_cast<std::size_t>(g)];
      for (std::int64_t c = 0; c < dim(); ++c) {
        queries.set(g * dim() + c, drawn.queries.at(row * dim() + c));
      }
    }
    return queries;
  }

  // plain: shares of 1024, so that they add up to exactly 1.
  Tensor shares() const {
    const Random draw = random(given_stream);
    Tensor tensor(DType::f32, {groups(), m()});
    for (std::int64_t g = 0; g < groups(); ++g) {
      std::int64_t left = 1024;
      for (std::int64_t i = 0; i < m(); ++i) {
        const std::int64_t share = i + 1 == m() ? left : draw.integer(g * m() + i, 0, left);
        tensor.set(g * m() + i, static_cast<double>(share) / 1024);
        left -= share;
      }
    }
    return tensor;
  }

  WeightOperands given(std::string_view policy) const {
    const auto of_group = [&](const auto& value) {
      return GivenWeights{table(DType::f32, groups(), m(), value)};
    };
    if (policy == "plain") return GivenWeights{shares()};
    if (policy == "mean") {
      const double equal = 1 / static_cast<double>(m());
      return of_group([=](std::int64_t, std::int64_t) { return equal; });
    }
    if (policy == "last") {
      return of_group([&](std::int64_t, std::int64_t i) { return i + 1 == m() ? 1.0 : 0.0; });
    }
    if (policy == "composite_fixed") {
      // 0.4, 0.3, 0.2, 0.1 for four vectors; for others the same line.
      const double all = static_cast<double>(m() * (m() + 1)) / 2;
      return GivenWeights{table(DType::f32, heads(), m(), [&](std::int64_t, std::int64_t i) {
        return static_cast<double>(m() - i) / all;
      })};
    }
    const Random draw = random(given_stream);
    return of_group([&](std::int64_t g, std::int64_t i) { return draw.normal(g * m() + i); });
  }

  WeightOperands role_matrix(std::int64_t outputs) const {
    const Random draw = random(matrix_stream);
    return RoleMatrix{
        table(DType::f32, heads() * outputs, m(),
              [&](std::int64_t set, std::int64_t i) { return 2 * draw.normal(set * m() + i); })};
  }

  // The group is pooled for a query a few tokens behind it; ages reach several half-lives.
  WeightOperands additive(bool raw) const {
    const Random distance = random(distance_stream), age = random(age_stream);
    AdditiveTerms terms;
    terms.queries = queries();
    terms.distances = table(DType::f32, groups(), m(), [&](std::int64_t g, std::int64_t i) {
      return static_cast<double>(m() - 1 - i + distance.integer(g, 0, 9));
    });
    terms.ages = table(DType::f32, groups(), m(), [&](std::int64_t g, std::int64_t i) {
      return static_cast<double>(age.integer(g * m() + i, 0, 100));
    });
    terms.raw_cosine = raw;
    return terms;
  }

  WeightOperands gates() const {
    constexpr std::int64_t hidden = 256;
    const Random states = random(hidden_stream), gate = random(gate_weight_stream),
                 bias = random(gate_bias_stream);
    const std::int64_t tokens = groups() / heads(), width = hidden + dim();
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    GateOperands operands;
    operands.hidden_states =
        table(mode.storage, tokens, hidden,
              [&](std::int64_t t, std::int64_t x) { return states.normal(t * hidden + x); });
    operands.gate_weight = table(mode.storage, heads(), width, [&](std::int64_t h, std::int64_t x) {
      return scale * gate.normal(h * width + x);
    });
    operands.gate_bias = Tensor(DType::f32, {heads()});
    for (std::int64_t h = 0; h < heads(); ++h) operands.gate_bias.set(h, bias.normal(h));
    return operands;
  }

  // One group in eight was never accessed.
  WeightOperands access() const {
    const Random count = random(access_stream), among = random(groups_stream);
    AccessTerms terms;
    terms.queries = queries();
    terms.all_groups = groups();
    terms.accesses = table(DType::i32, groups(), m(), [&](std::int64_t g, std::int64_t i) {
      return among.integer(g, 0, 7) == 0 ? 0.0
                                         : static_cast<double>(count.integer(g * m() + i, 0, 9));
    });
    terms.groups_accessed = table(DType::i32, groups(), m(), [&](std::int64_t g, std::int64_t i) {
      return static_cast<double>(among.integer((g + 1) * m() + i, 0, groups()));
    });
    terms.position_terms = Tensor(DType::f32, {m()});
    for (std::int64_t i = 0; i < m(); ++i) {
      const double turn = static_cast<double>(i) / static_cast<double>(m());
      terms.position_terms.set(i, (1 + std::cos(std::numbers::pi * turn)) / 2);
    }
    return terms;
  }

  WeightOperands make(const PolicyInfo& policy) const {
    switch (policy.rule) {
      case WeightRule::given:
        return given(policy.name);
      case WeightRule::role_softmax:
        return role_matrix(policy.outputs);
      case WeightRule::additive:
        return additive(policy.name == "additive_raw");
      case WeightRule::gated:
        return gates();
      case WeightRule::tfidf:
        return access();
      case WeightRule::channel_softmax:
        return ChannelScores{drawn.gate_scores, drawn.ape};
      case WeightRule::maximum:
        break;
    }
    throw InternalError("block_max has no weights");
  }
};

// DeepSeek-V4: RMSNorm, then the trailing 64 channels (half of a narrow head) turn by the position
// of the window's first token, theta 160000.
NormRope norm_rope(const Problem& problem, const Layout& layout) {
  constexpr double theta = 160000;
  const std::int64_t dim = problem.indexer.index_head_dim,
                     dims = std::min<std::int64_t>(64, dim / 2);
  const Random draw(problem.seed, norm_stream);
  NormRope norm;
  norm.norm_weight = Tensor(DType::f32, {dim});
  for (std::int64_t c = 0; c < dim; ++c) norm.norm_weight.set(c, 1 + draw.normal(c) / 4);
  norm.rope_dims = dims;
  const std::int64_t window = problem.indexer.index_kpool / 2;
  const auto groups = static_cast<std::int64_t>(layout.groups.size());
  norm.rope = table(DType::f32, groups, dims, [&](std::int64_t g, std::int64_t c) {
    const double exponent = static_cast<double>(c / 2 * 2) / static_cast<double>(dims);
    const double angle = static_cast<double>(g * window) * std::pow(theta, -exponent);
    return c % 2 == 0 ? std::cos(angle) : std::sin(angle);
  });
  return norm;
}

}  // namespace

PoolingInputs make_inputs(const Problem& problem) {
  indexpool::validate(problem, "problem");
  const PolicyInfo& policy = find_policy(problem.policy);
  const NumericMode& mode = pooling_mode(problem.mode);
  const Layout layout = lay_out(problem, policy);
  const IndexerInputs values = drawn(problem, mode, layout.rows);
  PoolingInputs in;
  in.policy = problem.policy;
  in.mode = mode;
  in.index_kpool = problem.indexer.index_kpool;
  in.head_dim = problem.indexer.index_head_dim;
  in.heads = problem.indexer.index_n_heads;
  in.groups = layout.groups;
  in.offsets = layout.offsets;
  in.vectors = values.keys;
  in.weights = Maker{problem, mode, layout, values}.make(policy);
  if (policy.name == "csa") in.norm_rope = norm_rope(problem, layout);
  return in;
}

BlockMaxInputs make_block_max_inputs(const Problem& problem) {
  indexpool::validate(problem, "problem");
  const std::int64_t rows = problem.indexer.index_n_heads;
  std::int64_t tokens = 0;
  for (const std::int64_t length : problem.lengths) tokens += length;
  const Random draw(problem.seed, scores_stream), kind(problem.seed, kinds_stream);
  const auto score = [&](std::int64_t row, std::int64_t t) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::int64_t index = row * tokens + t;
    const std::int64_t of = kind.integer(index, 0, 1023);
    if (of < 32) return std::numeric_limits<double>::quiet_NaN();
    if (of < 64) return -infinity;
    if (of < 96) return -0.0;
    if (of == 96) return infinity;  // rare: the maximum of any block that has one
    return draw.normal(index);
  };
  return {table(DType::f32, rows, tokens, score), problem.indexer.index_kpool};
}

}  // namespace indexpool::verify::policy
