// Straightforward binary32 programs of the backward pass, in the styles of policy_programs.hpp, and
// the same with planted mistakes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "policy_programs.hpp"

namespace indexpool::reference {

enum class BackwardMistake {
  none,
  division_forgotten,    // by the weights' sum
  mean_not_subtracted,   // of the pooled vector, or of the softmax
  slope_of_exponential,  // w instead of w (1 - w)
  neighbours_slot,       // vector i + 1 instead of i
  norm_held_fixed,       // as if the norm did not depend on the vectors
  rotated_forward,       // instead of back
  narrow_sums            // rounded to bf16 after each addition
};

struct HeldProgram {
  std::vector<float> vectors, pool_weights, norm_weight;
};

// a . b in the style's order.
inline float backward_dot(const std::vector<float>& a, const std::vector<float>& b,
                          const Style& style, BackwardMistake mistake) {
  const bool narrow = mistake == BackwardMistake::narrow_sums;
  return dot_f32(a, b, style, 0, narrow ? Mistake::narrow_accumulator : Mistake::none);
}

class HeldGroup {
 public:
  HeldGroup(const PoolingInputs& in, const std::vector<float>& stored,
            const std::vector<float>& grad, std::int64_t g, const Style& style,
            BackwardMistake mistake)
      : in_(in), stored_(stored), g_(g), style_(style), mistake_(mistake) {
    const auto first = grad.begin() + g * in.head_dim;
    grad_.assign(first, first + in.head_dim);
    absent_ = in.groups[static_cast<std::size_t>(g)].absent;
    for (std::int64_t i = absent_; i < in.index_kpool; ++i) {
      const bool off = mistake == BackwardMistake::neighbours_slot && i + 1 < in.index_kpool;
      rows_.push_back(vector_of(in, g, off ? i + 1 : i, in.vectors));
    }
  }
  void add_to(HeldProgram& result) const {
    if (in_.per_channel()) return per_channel(result);
    const std::vector<float> w = weights(0);
    const bool divides = find_policy(in_.policy).normalisation == Normalisation::division;
    const float sum = divides ? sum_f32(w, style_) : 1;
    const bool mean = std::abs(sum) < 0x1p-126F;
    const float divisor = mistake_ == BackwardMistake::division_forgotten ? 1 : sum;
    const std::vector<float> of_weights = divides ? divided(w, divisor) : plain();
    const auto count = static_cast<float>(rows_.size());
    for (std::int64_t i = 0; i < in_.index_kpool; ++i) {
      const bool there = i >= absent_;
      const auto k = static_cast<std::size_t>(i - absent_);
      result.pool_weights.push_back(there && !mean ? of_weights[k] : 0);
      for (const float g : grad_) {
        if (!there) {
          result.vectors.push_back(0);
        } else if (mean) {
          result.vectors.push_back(quotient(g, count, style_));
        } else {
          result.vectors.push_back(style_.divide_first ? g * quotient(w[k], divisor, style_)
                                                       : quotient(g * w[k], divisor, style_));
        }
      }
    }
  }

 private:
  // Of the present vectors, in channel c.
  std::vector<float> weights(std::int64_t c) const {
    std::vector<float> w;
    const std::int64_t set = in_.groups[static_cast<std::size_t>(g_)].weight_set;
    for (std::int64_t i = absent_; i < in_.index_kpool; ++i) {
      const std::int64_t at = in_.per_channel() ? (g_ * in_.index_kpool + i) * in_.head_dim + c
                                                : set * in_.index_kpool + i;
      w.push_back(stored_[static_cast<std::size_t>(at)]);
    }
    return w;
  }
  std::vector<float> column(std::size_t c) const {
    std::vector<float> v;
    for (const auto& row : rows_) v.push_back(row[c]);
    return v;
  }
  std::vector<float> plain() const {
    std::vector<float> result;
    for (const auto& row : rows_) result.push_back(backward_dot(grad_, row, style_, mistake_));
    return result;
  }
  // By dots alone, or with the pooled vector.
  std::vector<float> divided(const std::vector<float>& w, float divisor) const {
    const bool subtract = mistake_ != BackwardMistake::mean_not_subtracted;
    if (style_.order % 2 == 0) {
      std::vector<float> result = plain();
      const float pooled = subtract ? quotient(dot_f32(w, result, style_), divisor, style_) : 0;
      for (float& a : result) a = quotient(a - pooled, divisor, style_);
      return result;
    }
    std::vector<float> pooled, result;
    for (std::size_t c = 0; c < grad_.size(); ++c)
      pooled.push_back(subtract ? quotient(dot_f32(w, column(c), style_), divisor, style_) : 0);
    for (const auto& row : rows_) {
      std::vector<float> apart;
      for (std::size_t c = 0; c < row.size(); ++c) apart.push_back(row[c] - pooled[c]);
      result.push_back(quotient(backward_dot(grad_, apart, style_, mistake_), divisor, style_));
    }
    return result;
  }
  void per_channel(HeldProgram& result) const {
    std::vector<float> grad = grad_;
    if (!in_.norm_rope.norm_weight.empty()) through_norm(grad, result.norm_weight);
    for (std::int64_t i = 0; i < in_.index_kpool; ++i) {
      for (std::size_t c = 0; c < grad.size(); ++c) {
        const bool there = i >= absent_;
        const auto k = static_cast<std::size_t>(i - absent_);
        const auto w = weights(static_cast<std::int64_t>(c));
        result.vectors.push_back(there ? grad[c] * w[k] : 0);
        result.pool_weights.push_back(there ? grad[c] * rows_[k][c] : 0);
      }
    }
  }
  void through_norm(std::vector<float>& grad, std::vector<float>& to_norm) const {
    const NormRope& norm = in_.norm_rope;
    const auto turned = grad.size() - static_cast<std::size_t>(norm.rope_dims);
    for (std::size_t c = turned; c < grad.size(); c += 2) {
      const std::int64_t at = g_ * norm.rope_dims + static_cast<std::int64_t>(c - turned);
      const auto cosine = static_cast<float>(norm.rope.at(at));
      auto sine = static_cast<float>(norm.rope.at(at + 1));
      if (mistake_ == BackwardMistake::rotated_forward) sine = -sine;
      const float a = grad[c], b = grad[c + 1];
      grad[c] = a * cosine + b * sine;
      grad[c + 1] = b * cosine - a * sine;
    }
    std::vector<float> y, unit, scaled;
    for (std::size_t c = 0; c < grad.size(); ++c)
      y.push_back(dot_f32(weights(static_cast<std::int64_t>(c)), column(c), style_));
    const auto dim = static_cast<float>(grad.size());
    const float root =
        std::sqrt(quotient(backward_dot(y, y, style_, mistake_), dim, style_) + norm.eps);
    for (std::size_t c = 0; c < grad.size(); ++c) {
      unit.push_back(quotient(y[c], root, style_));
      to_norm.push_back(style_.divide_first ? grad[c] * unit[c]
                                            : quotient(grad[c] * y[c], root, style_));
      scaled.push_back(grad[c] *
                       static_cast<float>(norm.norm_weight.at(static_cast<std::int64_t>(c))));
    }
    const float along = backward_dot(scaled, unit, style_, mistake_);
    const float mean =
        mistake_ == BackwardMistake::norm_held_fixed ? 0 : quotient(along, dim, style_);
    for (std::size_t c = 0; c < grad.size(); ++c)
      grad[c] =
          quotient(style_.fused ? std::fma(-unit[c], mean, scaled[c]) : scaled[c] - unit[c] * mean,
                   root, style_);
  }

  const PoolingInputs& in_;
  const std::vector<float>& stored_;
  std::int64_t g_, absent_ = 0;
  const Style& style_;
  BackwardMistake mistake_;
  std::vector<float> grad_;
  std::vector<std::vector<float>> rows_;
};

inline HeldProgram held_f32(const PoolingInputs& in, const std::vector<float>& stored,
                            const std::vector<float>& grad, const Style& style,
                            BackwardMistake mistake = BackwardMistake::none) {
  HeldProgram result;
  for (std::int64_t g = 0; g < in.group_count(); ++g)
    HeldGroup(in, stored, grad, g, style, mistake).add_to(result);
  return result;
}

inline std::vector<float> softmax_backward_f32(const std::vector<float>& w,
                                               const std::vector<float>& b, std::size_t m,
                                               std::size_t stride, const Style& style,
                                               BackwardMistake mistake = BackwardMistake::none) {
  std::vector<float> result(w.size());
  for (std::size_t first = 0; first < w.size(); first += m * stride) {
    for (std::size_t c = first; c < first + stride; ++c) {
      std::vector<float> of_w, of_b;
      for (std::size_t i = 0; i < m; ++i)
        of_w.push_back(w[c + i * stride]), of_b.push_back(b[c + i * stride]);
      float mean = dot_f32(of_w, of_b, style);
      if (mistake == BackwardMistake::mean_not_subtracted) mean = 0;
      for (std::size_t i = 0; i < m; ++i)
        result[c + i * stride] = style.fused ? std::fma(of_w[i], of_b[i], -(of_w[i] * mean))
                                             : of_w[i] * (of_b[i] - mean);
    }
  }
  return result;
}

struct GateProgram {
  std::vector<float> vectors, hidden_states, gate_weight, gate_bias;
};
// Every sum in the style's order.
class GateBackwardF32 {
 public:
  GateBackwardF32(const PoolingInputs& in, const std::vector<float>& w, const std::vector<float>& b,
                  const Style& style, BackwardMistake mistake)
      : in_(in), gate_(std::get<GateOperands>(in.weights)), style_(style) {
    for (std::size_t k = 0; k < w.size(); ++k) {
      const auto g = k / static_cast<std::size_t>(in.index_kpool);
      const bool there = static_cast<std::int64_t>(k) % in.index_kpool >= in.groups[g].absent;
      const float slope =
          mistake == BackwardMistake::slope_of_exponential ? w[k] : w[k] * (1 - w[k]);
      dz_.push_back(!there ? 0 : style.divide_first ? b[k] * slope : b[k] * w[k] * (1 - w[k]));
      if (there && mistake == BackwardMistake::slope_of_exponential) dz_.back() = b[k] * slope;
    }
  }
  GateProgram run(const std::vector<float>& held) const {
    GateProgram result;
    const std::int64_t m = in_.index_kpool, dim = in_.head_dim, x_count = hidden();
    const std::int64_t tokens = gate_.hidden_states.dim(0);
    for (std::int64_t k = 0; k < in_.group_count() * m; ++k) {
      const bool there = k % m >= in_.groups[static_cast<std::size_t>(k / m)].absent;
      for (std::int64_t c = 0; c < dim; ++c) {
        const float before = held[static_cast<std::size_t>(k * dim + c)];
        const float by = gate(k / m % in_.heads, x_count + c);
        const float product = dz_[static_cast<std::size_t>(k)] * by;
        result.vectors.push_back(!there ? 0
                                 : style_.fused
                                     ? std::fma(dz_[static_cast<std::size_t>(k)], by, before)
                                     : before + product);
      }
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t x = 0; x < x_count; ++x) {
        std::vector<float> z, by;
        for (std::int64_t k = t * in_.heads * m;
             k < std::min((t + 1) * in_.heads, in_.group_count()) * m; ++k)
          z.push_back(dz_[static_cast<std::size_t>(k)]), by.push_back(gate(k / m % in_.heads, x));
        result.hidden_states.push_back(dot_f32(z, by, style_));
      }
    }
    for (std::int64_t h = 0; h < in_.heads; ++h) {
      for (std::int64_t x = 0; x < x_count + dim; ++x) result.gate_weight.push_back(of_head(h, x));
      result.gate_bias.push_back(of_head(h, -1));
    }
    return result;
  }

 private:
  std::int64_t hidden() const { return gate_.hidden_states.dim(1); }
  float gate(std::int64_t head, std::int64_t column) const {
    return static_cast<float>(gate_.gate_weight.at(head * (hidden() + in_.head_dim) + column));
  }
  // Column x of the head's gate; below 0 the bias.
  float of_head(std::int64_t head, std::int64_t x) const {
    std::vector<float> z, by;
    for (std::int64_t g = head; g < in_.group_count(); g += in_.heads) {
      for (std::int64_t i = in_.groups[static_cast<std::size_t>(g)].absent; i < in_.index_kpool;
           ++i) {
        z.push_back(dz_[static_cast<std::size_t>(g * in_.index_kpool + i)]);
        const std::int64_t row = in_.groups[static_cast<std::size_t>(g)].first_row +
                                 in_.offsets[static_cast<std::size_t>(i)];
        by.push_back(x < 0 ? 1
                     : x < hidden()
                         ? static_cast<float>(gate_.hidden_states.at(g / in_.heads * hidden() + x))
                         : static_cast<float>(in_.vectors.at(row * in_.head_dim + x - hidden())));
      }
    }
    return dot_f32(z, by, style_);
  }

  const PoolingInputs& in_;
  const GateOperands& gate_;
  const Style& style_;
  std::vector<float> dz_;
};

}  // namespace indexpool::reference
