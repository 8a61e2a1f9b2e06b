#include <cmath>

#include "indexpool/reference/indexer.hpp"

#include "corruptions.hpp"

namespace indexpool::verify {
namespace {

// One logit of fp8_small's shape, from the codes and scales that were stored.
struct Pair {
  std::span<const std::uint8_t> query_codes, pool_row;  // [H * D], [D + 4]
  std::span<const float> query_scales, head_weights;    // [H]
  double logit_scale = 1;
  std::size_t dim() const { return pool_row.size() - 4; }
  double code(std::size_t head, std::size_t c) const {
    return float_from_e4m3(query_codes[head * dim() + c]);
  }
  double key(std::size_t c) const { return float_from_e4m3(pool_row[c]); }
  double pool_scale() const {
    float scale = 0;
    std::memcpy(&scale, pool_row.data() + dim(), 4);
    return scale;
  }
  double head(std::size_t h) const {
    return static_cast<double>(head_weights[h]) * query_scales[h] * logit_scale;
  }
};

double exact_dot(const Pair& pair, std::size_t head) {
  double dot = 0;
  for (std::size_t c = 0; c < pair.dim(); ++c) dot += pair.code(head, c) * pair.key(c);
  return dot;
}

double without_relu(const Pair& pair) {
  double sum = 0;
  for (std::size_t h = 0; h < pair.query_scales.size(); ++h) {
    sum += pair.head(h) * exact_dot(pair, h);
  }
  return pair.pool_scale() * sum;
}
double accumulated_in_bf16(const Pair& pair) {
  double sum = 0;
  for (std::size_t h = 0; h < pair.query_scales.size(); ++h) {
    double dot = 0;
    for (std::size_t c = 0; c < pair.dim(); ++c) {
      dot = round_to(DType::bf16, dot + pair.code(h, c) * pair.key(c));
    }
    sum += pair.head(h) * std::max(dot, 0.0);
  }
  return pair.pool_scale() * sum;
}
// Scores in f16 between the dot product and the head sum: a step that some kernels save shared
// memory with.
double scores_in_f16(const Pair& pair) {
  double sum = 0;
  for (std::size_t h = 0; h < pair.query_scales.size(); ++h) {
    sum += pair.head(h) * round_to(DType::f16, std::max(exact_dot(pair, h), 0.0));
  }
  return pair.pool_scale() * sum;
}
double relu_after_the_head_sum(const Pair& pair) { return std::max(without_relu(pair), 0.0); }
double without_pool_scale(const Pair& pair) {
  double sum = 0;
  for (std::size_t h = 0; h < pair.query_scales.size(); ++h) {
    sum += pair.head(h) * std::max(exact_dot(pair, h), 0.0);
  }
  return sum;
}
double first_half_of_the_heads(const Pair& pair) {
  double sum = 0;
  for (std::size_t h = 0; h < pair.query_scales.size() / 2; ++h) {
    sum += pair.head(h) * std::max(exact_dot(pair, h), 0.0);
  }
  return pair.pool_scale() * sum;
}

void recompute(Answered& answers, double (*logit)(const Pair& pair)) {
  const IndexerInputs& inputs = answers.foreign.test_case.inputs;
  const auto heads = static_cast<std::size_t>(inputs.config.index_n_heads);
  const auto dim = static_cast<std::size_t>(inputs.config.index_head_dim);
  const Tensor codes = output(answers, "q_codes"), rows = output(answers, "pool_rows");
  const Tensor scales = output(answers, "q_scales"), head_weights = inputs.head_weights;
  auto logits = output(answers, "logits").as<float>();
  const auto width = static_cast<std::size_t>(output(answers, "logits").dim(1));
  for (std::size_t token = 0; token < static_cast<std::size_t>(inputs.rows()); ++token) {
    for (std::size_t p = 0; p < (token + 1) / 4; ++p) {
      const Pair pair{codes.as<std::uint8_t>().subspan(token * heads * dim, heads * dim),
                      rows.as<std::uint8_t>().subspan(p * (dim + 4), dim + 4),
                      scales.as<float>().subspan(token * heads, heads),
                      head_weights.as<float>().subspan(token * heads, heads), inputs.logit_scale};
      logits[token * width + p] = static_cast<float>(logit(pair));
    }
  }
}

float& logit(Answered& answers, std::int64_t row, std::int64_t pool) {
  Tensor& logits = output(answers, "logits");
  return logits.as<float>()[static_cast<std::size_t>(row * logits.dim(1) + pool)];
}

const Corruption table[] = {
    // --- quantised queries ---
    {"query_scale_of_the_neighbour_head", "fp8_outlier", Op::quantize_query, "scale",
     "row 12, head 3:",
     [](Answered& a) {
       auto scales = output(a, "q_scales").as<float>();
       scales[12 * 8 + 3] *= 4;
     }},
    {"query_code_nan", "fp8_small", Op::quantize_query, "quantiser", "row 44, head 3, channel 127:",
     [](Answered& a) { output(a, "q_codes").as<std::uint8_t>().back() = 0xff; }},
    {"query_heads_exchanged", "fp8_small", Op::quantize_query, "quantiser",
     "row 2, head 0, channel",
     [](Answered& a) {
       Tensor heads = output(a, "q_codes").reshaped({45 * 4, 128});
       exchange_rows(heads, 2 * 4, 2 * 4 + 1);
     }},
    {"query_not_rotated", "fp8_small", Op::quantize_query, "quantiser", "row 0, head 0, channel",
     [](Answered& a) {
       const Tensor& queries = a.foreign.test_case.inputs.queries;
       auto codes = output(a, "q_codes").as<std::uint8_t>();
       const auto scales = output(a, "q_scales").as<float>();
       for (std::size_t i = 0; i < codes.size(); ++i) {
         codes[i] = e4m3_from_float(static_cast<float>(queries.at(static_cast<std::int64_t>(i))) /
                                    scales[i / 128]);
       }
     }},
    // --- logits ---
    {"relu_dropped", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, without_relu); }},
    {"relu_after_the_head_sum", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, relu_after_the_head_sum); }},
    {"bf16_accumulation", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, accumulated_in_bf16); }},
    {"scores_in_f16", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, scores_in_f16); }},
    {"pool_scale_dropped", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, without_pool_scale); }},
    {"half_of_the_heads", "fp8_small", Op::logits, "bound",
     "sequence 0, token 3, pool 0:", [](Answered& a) { recompute(a, first_half_of_the_heads); }},
    {"nan_logit", "glm53_small_f32", Op::logits, "bound",
     "sequence 0, token 20, pool 4:", [](Answered& a) { logit(a, 20, 4) = NAN; }},
    {"logit_minus_infinity", "glm53_small_f32", Op::logits, "bound",
     "sequence 0, token 20, pool 4:", [](Answered& a) { logit(a, 20, 4) = -INFINITY; }},
    {"logits_one_column_late", "glm53_small_f32", Op::logits, "bound",
     "sequence 0, token 36, pool 1:",
     [](Answered& a) {
       for (std::int64_t p = 8; p > 0; --p) logit(a, 36, p) = logit(a, 36, p - 1);
     }},
    {"two_rows_of_logits_exchanged", "prefill_f32", Op::logits, "bound",
     "sequence 0, token 200, pool 0:",
     [](Answered& a) { exchange_rows(output(a, "logits"), 200, 201); }},
    {"stale_row_of_logits", "glm53_bf16", Op::logits, "bound", "sequence 0, token 386, pool 0:",
     [](Answered& a) { copy_row(output(a, "logits"), 386, 385); }},
    {"last_pool_of_a_row_not_scored", "glm53_small_f32", Op::logits, "bound",
     "sequence 0, token 27, pool 6:", [](Answered& a) { logit(a, 27, 6) = 0; }},
    {"logits_of_the_neighbour_sequence", "rightpad_batch_f32", Op::logits, "bound",
     "sequence 1, token",
     [](Answered& a) {
       const Sequence& second = a.foreign.test_case.inputs.sequences[1];
       copy_row(output(a, "logits"), second.first_row + 11, 11);
     }},
    {"logits_in_bf16", "prefill_f32", Op::logits, "bound", "sequence 0, token 4, pool 0:",
     [](Answered& a) {
       for (float& x : output(a, "logits").as<float>()) {
         x = static_cast<float>(round_to(DType::bf16, x));
       }
     }},
    {"logits_in_tf32", "prefill_f32", Op::logits, "bound", "sequence 0, token",
     [](Answered& a) {
       for (float& x : output(a, "logits").as<float>()) {  // 10 fraction bits
         if (x == 0 || !std::isfinite(x)) continue;
         x = static_cast<float>(
             std::ldexp(std::nearbyint(std::ldexp(x, 11 - std::ilogb(x))), std::ilogb(x) - 11));
       }
     }},
};

}  // namespace

std::span<const Corruption> query_and_logit_corruptions() { return table; }

}  // namespace indexpool::verify
