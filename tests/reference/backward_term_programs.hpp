// Straightforward binary32 programs of what follows the gradients of additive and tfidf weights, in
// the styles of policy_programs.hpp, and the same with planted mistakes.
#pragma once

#include <cmath>
#include <vector>

#include "policy_programs.hpp"

namespace indexpool::reference {

enum class TermMistake {
  none,
  norm_of_vector_fixed,  // as if |V| did not depend on V
  norm_of_query_fixed,
  halves_forgotten,   // of (1 + cos) / 2
  held_forgotten,     // what reached the vectors already
  width_not_cubed,    // d^2 / sigma^2 in place of d^2 / sigma^3
  decay_not_squared,  // a / tau in place of a / tau^2
  shares_swapped,     // alpha for gamma
  absent_accesses     // counted
};

struct TermProgram {
  std::vector<float> vectors, queries, cosines;
};
class CosineBackwardF32 {
 public:
  CosineBackwardF32(const PoolingInputs& in, const std::vector<float>& b, const Style& style,
                    TermMistake mistake)
      : in_(in), b_(b), style_(style), mistake_(mistake) {
    if (const auto* w = std::get_if<AdditiveTerms>(&in.weights)) {
      queries_ = &w->queries;
      share_ = w->raw_cosine || mistake == TermMistake::halves_forgotten ? w->beta : w->beta * 0.5F;
    } else {
      const auto& terms = std::get<AccessTerms>(in.weights);
      queries_ = &terms.queries;
      share_ = mistake == TermMistake::halves_forgotten ? terms.mix[2] : terms.mix[2] * 0.5F;
    }
  }
  TermProgram run(const std::vector<float>& held) const {
    TermProgram result;
    for (std::int64_t g = 0; g < in_.group_count(); ++g) group(g, held, result);
    return result;
  }

 private:
  void group(std::int64_t g, const std::vector<float>& held, TermProgram& result) const {
    const auto dim = static_cast<std::size_t>(in_.head_dim);
    const auto q = floats(*queries_, g * in_.head_dim, in_.head_dim);
    std::vector<std::vector<float>> of_channel(dim), by(dim);
    const float qq = dot_f32(q, q, style_);
    for (std::int64_t i = 0; i < in_.index_kpool; ++i) {
      const auto slot = static_cast<std::size_t>(g * in_.index_kpool + i);
      if (i < in_.groups[static_cast<std::size_t>(g)].absent) {
        result.vectors.insert(result.vectors.end(), dim, 0.0F);
        result.cosines.push_back(0);
        continue;
      }
      const auto v = vector_of(in_, g, i, in_.vectors);
      const float vv = dot_f32(v, v, style_), cos = cosine_f32(q, v, style_, Mistake::none);
      const bool defined = qq != 0 && vv != 0;
      const float b = share_ * b_[slot];
      const float other = defined ? over_norms(b, qq, vv) : 0;
      const float own = defined ? quotient(b * cos, vv, style_) : 0;
      const float own_query = defined ? quotient(b * cos, qq, style_) : 0;
      result.cosines.push_back(cos);
      for (std::size_t c = 0; c < dim; ++c) {
        const float before = mistake_ == TermMistake::held_forgotten ? 0 : held[slot * dim + c];
        const float taken = mistake_ == TermMistake::norm_of_vector_fixed ? 0 : own * v[c];
        result.vectors.push_back(style_.order == 0 ? before + (other * q[c] - taken)
                                                   : std::fma(other, q[c], before) - taken);
        of_channel[c].push_back(other), by[c].push_back(v[c]);
        if (mistake_ == TermMistake::norm_of_query_fixed) continue;
        of_channel[c].push_back(own_query), by[c].push_back(-q[c]);
      }
    }
    for (std::size_t c = 0; c < dim; ++c)
      result.queries.push_back(dot_f32(of_channel[c], by[c], style_));
  }
  float over_norms(float b, float qq, float vv) const {
    if (style_.cosine == 0) return quotient(b, std::sqrt(qq) * std::sqrt(vv), style_);
    if (style_.cosine == 1) return quotient(b, std::sqrt(qq * vv), style_);
    return b * (1 / std::sqrt(qq)) * (1 / std::sqrt(vv));
  }

  const PoolingInputs& in_;
  const std::vector<float>& b_;
  const Style& style_;
  TermMistake mistake_;
  const Tensor* queries_ = nullptr;
  float share_ = 0;
};

// Sums over rows of groups of what their slots give.
class TermSumsF32 {
 public:
  TermSumsF32(const PoolingInputs& in, const std::vector<float>& b,
              const std::vector<float>& cosines, std::int64_t groups_per_row, const Style& style,
              TermMistake mistake)
      : in_(in),
        b_(b),
        cosines_(cosines),
        groups_per_row_(groups_per_row),
        style_(style),
        mistake_(mistake) {}

  std::vector<float> terms() const {
    std::vector<float> rows;
    for (std::int64_t g = 0; g < in_.group_count(); g += groups_per_row_) {
      const auto row = row_of(g, std::min(g + groups_per_row_, in_.group_count()));
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
  }
  std::vector<float> position_rows() const {
    const auto* w = std::get_if<AccessTerms>(&in_.weights);
    std::vector<float> result;
    for (std::int64_t k = 0; w != nullptr && k < in_.group_count() * in_.index_kpool; ++k) {
      const bool there = k % in_.index_kpool >= absent(k / in_.index_kpool);
      result.push_back(there ? w->mix[1] * b_[static_cast<std::size_t>(k)] : 0);
    }
    return result;
  }

 private:
  std::vector<float> row_of(std::int64_t first, std::int64_t end) const {
    std::vector<std::vector<float>> factors(std::holds_alternative<AdditiveTerms>(in_.weights) ? 5
                                                                                               : 3);
    std::vector<float> of;
    for (std::int64_t g = first; g < end; ++g) {
      for (std::int64_t i = absent(g); i < in_.index_kpool; ++i) {
        of.push_back(b_[static_cast<std::size_t>(g * in_.index_kpool + i)]);
        const auto row = slot(g, i);
        for (std::size_t t = 0; t < row.size(); ++t) factors[t].push_back(row[t]);
      }
    }
    std::vector<float> sums;
    for (const auto& f : factors) sums.push_back(dot_f32(of, f, style_));
    return sums;
  }
  std::int64_t absent(std::int64_t g) const {
    return in_.groups[static_cast<std::size_t>(g)].absent;
  }
  float content(std::int64_t at) const {
    const float cos = cosines_[static_cast<std::size_t>(at)];
    if (mistake_ == TermMistake::halves_forgotten) return 1 + cos;
    return style_.fused ? std::fma(cos, 0.5F, 0.5F) : (1 + cos) * 0.5F;
  }
  std::vector<float> slot(std::int64_t g, std::int64_t i) const {
    const std::int64_t at = g * in_.index_kpool + i;
    if (const auto* w = std::get_if<AccessTerms>(&in_.weights)) {
      const std::int64_t from = mistake_ == TermMistake::absent_accesses ? 0 : absent(g);
      const float total =
          sum_f32(floats(w->accesses, g * in_.index_kpool + from, in_.index_kpool - from), style_);
      const auto accesses = static_cast<float>(w->accesses.at(at));
      const float tf = total == 0 ? 0 : quotient(accesses, total, style_);
      const float idf = WeightProgram{in_, style_}.idf(*w, at);
      return {tf * idf, static_cast<float>(w->position_terms.at(i)), content(at)};
    }
    const auto& w = std::get<AdditiveTerms>(in_.weights);
    const float x = quotient(static_cast<float>(w.distances.at(at)), w.sigma, style_);
    const float steps = quotient(static_cast<float>(w.ages.at(at)), w.tau, style_);
    const float position = style_.exponential(-0.5F * x * x), age = style_.exponential(-steps);
    const float cos = cosines_[static_cast<std::size_t>(at)];
    const float wide = mistake_ == TermMistake::width_not_cubed ? 1 : w.sigma;
    const float slow = mistake_ == TermMistake::decay_not_squared ? 1 : w.tau;
    const bool swapped = mistake_ == TermMistake::shares_swapped;
    const float spread = position == 0 ? 0 : quotient(position * x * x, wide, style_);
    const float decay = age == 0 ? 0 : quotient(age * steps, slow, style_);
    return {position, w.raw_cosine ? cos : content(at), age, (swapped ? w.gamma : w.alpha) * spread,
            w.gamma * decay};
  }

  const PoolingInputs& in_;
  const std::vector<float>&b_, &cosines_;
  std::int64_t groups_per_row_;
  const Style& style_;
  TermMistake mistake_;
};

}  // namespace indexpool::reference
