// Feed-forward parts: dense, or routed experts with shared ones beside them.
#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// silu(gate) * up over `width` elements of `rows` for each row of the step.
Stream activation(std::int64_t width, std::int64_t rows) {
  return {2 * rows * width * bf16_bytes, rows * width * bf16_bytes, {}, 0, 6 * rows * width, 1};
}

void plan_dense(Planner& p, Tensors& tensors) {
  p.group = "dense MLP";
  const ParameterTensor up = tensors.take("gate_proj, up_proj");
  p.add("gate_proj, up_proj", tensors.product(up));
  p.add("activation", activation(tensors.rows(up) / 2, 1));
  p.add("down_proj", tensors.product(tensors.take("down_proj")));
}

ExpertProduct experts_of(const Planner& p, const Tensors& tensors, const ParameterTensor& tensor) {
  const Mixture& m = p.a.mixture;
  const std::int64_t here = p.serving.expert_parallel ? m.routed / p.ranks() : m.routed;
  const std::int64_t matrices = tensor.count / m.routed;  // gate and up side by side
  return {tensors.rows(tensor) / m.routed,
          tensors.columns(tensor),
          m.routed,
          here,
          m.per_token,
          tensor.format,
          Bytes(tensors.bytes(tensor).value / tensor.count * matrices)};
}

void add_router(Planner& p, Tensors& tensors) {
  const Mixture& m = p.a.mixture;
  p.group = "router";
  p.add("gate", tensors.product(tensors.take("gate")));
  // Scores in f32, the chosen, and the order of rows by expert.
  Stream choice{m.routed * (bf16_bytes + f32_bytes),
                m.per_token * 3 * f32_bytes,
                tensors.take_bytes({"e_score_correction_bias"}),
                0,
                10 * m.routed,
                2};
  if (tensors.has("gate.tid2eid")) {
    tensors.take("gate.tid2eid");  // a row of it for each token
    choice.read_per_row += m.per_token * 8;
  }
  p.add("choice of experts, order of rows", choice);
}

void add_routed(Planner& p, Tensors& routed) {
  const Mixture& m = p.a.mixture;
  const bool whole = p.serving.expert_parallel && p.ranks() > 1;
  const std::int64_t hidden = p.a.hidden_size;
  p.group = "routed experts";
  const ParameterTensor up = routed.take("experts.gate_proj, up_proj");
  const ParameterTensor down = routed.take("experts.down_proj");
  const auto exchange = [&](const char* name) {
    if (!whole) return;
    p.group = "collectives";
    // A rank sends its share of the rows to the ranks of their experts.
    p.add(name, Collective{CollectiveKind::all_to_all, p.ranks(),
                           divided_up(m.per_token * hidden * bf16_bytes, p.ranks())});
    p.group = "routed experts";
  };
  exchange("all-to-all to the experts");
  const ExpertProduct wide = experts_of(p, routed, up);
  p.add("experts.gate_proj, up_proj", wide);
  p.add("activation", activation(wide.n / 2, m.per_token));
  p.add("experts.down_proj", experts_of(p, routed, down));
  p.add("weighted sum of experts", Stream{m.per_token * hidden * bf16_bytes,
                                          hidden * bf16_bytes,
                                          {},
                                          0,
                                          2 * m.per_token * hidden,
                                          1});
  exchange("all-to-all from the experts");
}

void plan_mixture(Planner& p, Tensors& tensors, Tensors& routed) {
  add_router(p, tensors);
  p.begin_section();
  add_routed(p, routed);
  if (tensors.has("shared_experts.gate_proj, up_proj")) {
    p.side("shared experts");
    const ParameterTensor up = tensors.take("shared_experts.gate_proj, up_proj");
    p.add("shared_experts.gate_proj, up_proj", tensors.product(up));
    p.add("activation", activation(tensors.rows(up) / 2, 1));
    p.add("shared_experts.down_proj", tensors.product(tensors.take("shared_experts.down_proj")));
  }
  p.end_section("routed experts");
}

}  // namespace

void plan_feed_forward(Planner& p, Tensors& tensors, Tensors& routed, MlpKind kind) {
  if (kind == MlpKind::dense) {
    plan_dense(p, tensors);
  } else {
    plan_mixture(p, tensors, routed);
  }
  p.all_reduce(p.a.hidden_size);
}

}  // namespace indexpool::step
