// Linear attention: a recurrent state instead of a cache.
#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

struct Widths {
  std::int64_t keys, values, channels;  // of a rank
};
Widths widths_of(const Planner& p) {
  const LinearAttention& l = p.a.linear;
  const std::int64_t keys = l.key_heads * l.key_dim / p.ranks();
  const std::int64_t values = l.value_heads * l.value_dim / p.ranks();
  return {keys, values, 2 * keys + values};
}

// Last tokens of the convolution, bf16; a rejected draft is undone by the tokens before it.
Stream convolution(const Planner& p, Bytes parameters) {
  const std::int64_t channels = widths_of(p).channels;
  const std::int64_t taps = p.a.linear.conv_kernel - 1 + p.serving.request.drafts;
  return {channels * bf16_bytes,
          channels * bf16_bytes,
          parameters,
          channels * taps * bf16_bytes,
          2 * channels * p.a.linear.conv_kernel,
          1};
}

Recurrence recurrence(const Planner& p, std::int64_t gates, Bytes parameters) {
  const LinearAttention& l = p.a.linear;
  const std::int64_t heads = l.value_heads / p.ranks();
  return {heads,
          l.key_dim,
          l.value_dim,
          widths_of(p).channels + gates,
          heads * l.key_dim * l.value_dim * f32_bytes,
          parameters};
}

// Norm of each head's output, times its gate.
Stream gated_norm(const Planner& p, Bytes parameters) {
  const std::int64_t width = widths_of(p).values;
  return {2 * width * bf16_bytes, width * bf16_bytes, parameters, 0, 8 * width, 1};
}

void plan_kda(Planner& p, Tensors& tensors) {
  const std::int64_t width = widths_of(p).values;
  p.add("q_proj, k_proj, v_proj", tensors.product(tensors.take("q_proj, k_proj, v_proj")));
  p.add("f_a_proj, g_a_proj", tensors.product(tensors.take("f_a_proj, g_a_proj")));
  const ParameterTensor wide = tensors.take("f_b_proj, g_b_proj");
  p.add("f_b_proj, g_b_proj", MatrixProduct{tensors.rows(wide) / wide.count, tensors.columns(wide),
                                            wide.count, wide.format, tensors.bytes(wide)});
  p.add("b_proj", tensors.product(tensors.take("b_proj")));
  p.add("conv1d, activations", convolution(p, tensors.take_bytes({"conv1d"})));
  p.add("delta rule", recurrence(p, width, tensors.take_bytes({"dt_bias", "A_log"})),
        "flash-linear-attention: fused recurrent and chunk kernels of KDA");
  p.add("gated o_norm", gated_norm(p, tensors.take_bytes({"o_norm"})));
  p.add("o_proj", tensors.product(tensors.take("o_proj")));
}

void plan_gated_delta(Planner& p, Tensors& tensors) {
  p.add("in_proj_qkvz", tensors.product(tensors.take("in_proj_qkvz")));
  p.add("in_proj_ba", tensors.product(tensors.take("in_proj_ba")));
  p.add("conv1d, activations", convolution(p, tensors.take_bytes({"conv1d"})));
  p.add(
      "delta rule",
      recurrence(p, 2 * p.a.linear.value_heads / p.ranks(), tensors.take_bytes({"dt_bias, A_log"})),
      "flash-linear-attention: fused recurrent and chunk kernels of the gated delta rule");
  p.add("gated norm", gated_norm(p, tensors.take_bytes({"norm"})));
  p.add("out_proj", tensors.product(tensors.take("out_proj")));
}

}  // namespace

void plan_linear(Planner& p, Tensors& tensors, const LayerSpec& layer) {
  p.group = "linear attention";
  if (layer.attention == AttentionKind::kda) {
    plan_kda(p, tensors);
  } else {
    plan_gated_delta(p, tensors);
  }
  p.all_reduce(p.a.hidden_size);
}

}  // namespace indexpool::step
