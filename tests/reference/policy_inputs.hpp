// Random operands of any published form of pooling, of any size and magnitude.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/pooling.hpp"
#include "indexpool/reference/bounded.hpp"

namespace indexpool::reference {

// All but block_max.
inline std::vector<std::string> vector_policies() {
  auto names = policy_names();
  std::erase(names, "block_max");
  return names;
}

// Elements outside their enclosures.
inline std::int64_t outside(const Bounded& bounds, std::span<const float> answers) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    count += !admits(bounds.low[i], bounds.high[i], static_cast<double>(answers[i]));
  }
  return count;
}

// What the reference itself would store.
inline std::vector<float> stored(const Bounded& weights) {
  std::vector<float> result;
  for (const double w : weights.value) result.push_back(static_cast<float>(w));
  return result;
}

// How the numbers of vectors, queries and hidden states are drawn.
enum class Family {
  normal,
  log_uniform,  // 2^[-20, 15], either sign
  small,        // about 2^-10: squares as large as csa's eps
  tiny,         // about 2^-70: squares vanish in binary32
  huge,         // about 2^60
  sparse,       // mostly zeros, whole vectors among them
  equal         // the same vector everywhere
};

struct PolicyDraw {
  std::uint64_t seed = 1;
  std::string policy = "additive", mode = "f32";
  std::int64_t groups = 6, kpool = 4, dim = 32, heads = 2, hidden = 32;
  Family family = Family::normal;
  bool absent = true;       // some groups lack their first vectors
  bool extreme = false;     // gates of +-40, +-88, -inf; distances and ages far away
  double weight_scale = 1;  // of given weights
};

class OperandSource {
 public:
  OperandSource(const PolicyDraw& draw, DType storage)
      : random_(draw.seed), family_(draw.family), storage_(storage) {}

  double normal() { return normal_(random_); }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  double number() {
    switch (family_) {
      case Family::log_uniform:
        return std::copysign(std::exp2(uniform(-20, 15)), normal());
      case Family::small:
        return std::ldexp(normal(), -10);
      case Family::tiny:
        return std::ldexp(normal(), -70);
      case Family::huge:
        return std::ldexp(normal(), 60);
      case Family::sparse:
        return chance(0.8) ? 0 : normal();
      case Family::normal:
      case Family::equal:
        break;
    }
    return normal();
  }
  // Rows of the storage dtype; f16 keeps to its range.
  Tensor rows(const Shape& shape) {
    Tensor result(storage_, shape);
    const std::int64_t columns = shape.back();
    for (std::int64_t i = 0; i < result.size(); ++i) {
      double x = number();
      if (family_ == Family::equal && i >= columns) x = result.at(i % columns);
      if (family_ == Family::sparse && i / columns % 3 == 1) x = 0;
      if (storage_ == DType::f16) x = std::fmod(x, 1000.0);
      result.set(i, x);
    }
    return result;
  }
  Tensor numbers(const Shape& shape, double scale, double shift = 0) {
    Tensor result(DType::f32, shape);
    for (std::int64_t i = 0; i < result.size(); ++i) result.set(i, shift + scale * normal());
    return result;
  }
  Tensor counts(const Shape& shape, int most) {
    Tensor result(DType::i32, shape);
    for (std::int64_t i = 0; i < result.size(); ++i) {
      result.set(i, chance(0.3) ? 0 : std::floor(uniform(0, most)));
    }
    return result;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  Family family_;
  DType storage_;
};

inline Tensor magnitudes(Tensor tensor, bool extreme, OperandSource& source) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const bool far = extreme && source.chance(0.3);
    tensor.set(i, std::abs(tensor.at(i)) * (far ? 1e4 : 1));
  }
  return tensor;
}

inline void make_extreme(Tensor& tensor, bool infinite, OperandSource& source) {
  const double values[] = {40, -40, 88, -88, 87.5, -103, 0};
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (source.chance(0.5)) tensor.set(i, values[static_cast<int>(source.uniform(0, 7))]);
    if (infinite && source.chance(0.2)) tensor.set(i, -HUGE_VAL);
  }
}

inline WeightOperands weight_operands(const PolicyDraw& draw, const PoolingInputs& in,
                                      OperandSource& source) {
  const std::int64_t groups = draw.groups, m = draw.kpool, dim = draw.dim;
  switch (find_policy(draw.policy).rule) {
    case WeightRule::role_softmax: {
      RoleMatrix w{source.numbers({groups, m}, 2)};
      if (draw.extreme) make_extreme(w.pool_matrix, false, source);
      return w;
    }
    case WeightRule::additive: {
      AdditiveTerms w;
      w.queries = source.rows({groups, dim});
      w.distances = magnitudes(source.numbers({groups, m}, 3), draw.extreme, source);
      w.ages = magnitudes(source.numbers({groups, m}, 20), draw.extreme, source);
      w.raw_cosine = draw.policy == "additive_raw";
      return w;
    }
    case WeightRule::gated: {
      GateOperands w;
      w.hidden_states = source.rows({(groups + draw.heads - 1) / draw.heads, draw.hidden});
      w.gate_weight = Tensor(in.mode.storage, {draw.heads, draw.hidden + dim});
      for (std::int64_t i = 0; i < w.gate_weight.size(); ++i) {
        w.gate_weight.set(i, source.normal() / std::sqrt(static_cast<double>(draw.hidden + dim)));
      }
      w.gate_bias = source.numbers({draw.heads}, draw.extreme ? 60 : 1);
      return w;
    }
    case WeightRule::tfidf: {
      AccessTerms w;
      w.queries = source.rows({groups, dim});
      w.accesses = source.counts({groups, m}, draw.extreme ? 1 << 24 : 100);
      w.all_groups = draw.extreme ? std::int64_t{1} << 40 : groups;
      w.groups_accessed = source.counts({groups, m}, static_cast<int>(groups) + 1);
      w.position_terms = magnitudes(source.numbers({m}, 1), false, source);
      return w;
    }
    case WeightRule::channel_softmax: {
      ChannelScores w{source.rows(in.vectors.shape()), source.numbers({m, dim}, 0.5)};
      if (draw.extreme) make_extreme(w.gate_scores, false, source);
      return w;
    }
    case WeightRule::given:
    case WeightRule::maximum:
      break;
  }
  GivenWeights w{source.numbers({groups, m}, draw.weight_scale)};
  return w;
}

// Group g has m rows of its own, weight set g.
inline PoolingInputs random_policy_inputs(const PolicyDraw& draw) {
  PoolingInputs in;
  in.policy = draw.policy;
  in.mode = pooling_mode(draw.mode);
  in.index_kpool = draw.kpool;
  in.head_dim = draw.dim;
  in.heads = draw.heads;
  OperandSource source(draw, in.mode.storage);
  for (std::int64_t i = 0; i < draw.kpool; ++i) in.offsets.push_back(i);
  for (std::int64_t g = 0; g < draw.groups; ++g) {
    VectorGroup group{g * draw.kpool, static_cast<std::int32_t>(g), 0};
    if (draw.absent && g % 3 == 2) group.absent = static_cast<std::int32_t>(draw.kpool / 2);
    in.groups.push_back(group);
  }
  in.vectors = source.rows({draw.groups * draw.kpool, draw.dim});
  in.weights = weight_operands(draw, in, source);
  if (draw.policy == "csa") {
    in.norm_rope.norm_weight = source.numbers({draw.dim}, 0.2, 1);
    in.norm_rope.rope_dims = draw.dim / 16 * 8;
    in.norm_rope.rope = Tensor(DType::f32, {draw.groups, in.norm_rope.rope_dims});
    for (std::int64_t i = 0; i < in.norm_rope.rope.size(); i += 2) {
      const double angle = source.uniform(0, 6.3);
      in.norm_rope.rope.set(i, std::cos(angle));
      in.norm_rope.rope.set(i + 1, std::sin(angle));
    }
  }
  return in;
}

}  // namespace indexpool::reference
