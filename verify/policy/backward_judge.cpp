#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/policy/backward.hpp"

namespace indexpool::verify::policy {
namespace {

// Beside the streams of make_operands.cpp.
constexpr std::uint64_t grad_pooled_stream = 212;

Buffers buffers_of(const BackwardOutput& output) {
  const std::pair<const char*, const std::vector<float>*> all[] = {
      {"held vectors", &output.held_vectors},
      {"slot weights", &output.slot_weights},
      {"pool weights", &output.pool_weights},
      {"norm rows", &output.norm_rows},
      {"norm weight", &output.norm_weight},
      {"pool matrix", &output.pool_matrix},
      {"gate scores", &output.gate_scores},
      {"position bias", &output.position_bias},
      {"vectors", &output.vectors},
      {"hidden states", &output.hidden_states},
      {"gate of vectors", &output.gate_vectors},
      {"gate of hidden", &output.gate_hidden},
      {"gate bias", &output.gate_bias},
      {"queries", &output.queries},
      {"cosines", &output.cosines},
      {"term rows", &output.term_rows},
      {"terms", &output.terms},
      {"position rows", &output.position_rows},
      {"position terms", &output.position_terms}};
  Buffers buffers;
  for (const auto& [name, values] : all)
    if (!values->empty()) buffers.push_back({name, bytes_of(*values), 1, 1});
  return buffers;
}

}  // namespace

std::vector<float> make_grad_pooled(const Problem& problem, const PoolingInputs& inputs) {
  const Random draw(problem.seed, grad_pooled_stream);
  std::vector<float> grad;
  for (std::int64_t k = 0; k < inputs.group_count() * inputs.head_dim; ++k)
    grad.push_back(static_cast<float>(draw.normal(k) * (k % 61 == 7 ? 30 : 1)));
  return grad;
}

void judge_backward(ProblemJudge& judge, const PoolingInputs& inputs,
                    const std::vector<float>& weights) {
  if (!find_policy(inputs.policy).learnable) return;
  const std::vector<float> grad_pooled = make_grad_pooled(judge.problem, inputs);
  const auto groups = static_cast<double>(inputs.group_count());
  judge.record(Op::pool_backward, groups, [&](Record& record) {
    const auto run = [&](StageContext& context) {
      return run_backward(context, inputs, weights, grad_pooled, false);
    };
    const auto executed = execute(
        judge.options, run, [](const BackwardOutput& o) { return buffers_of(o); },
        OnGpu::same_bytes);
    std::vector<Check> checks = check_gradients(inputs, weights, grad_pooled, executed.first);
    const BackwardOutput clipped = judge.once([&](StageContext& context) {
      return run_backward(context, inputs, weights, grad_pooled, true);
    });
    checks.push_back(check_clipping(executed.first, clipped));
    ProblemJudge::finish(executed, std::move(checks), record);
    record.verdict.rows = inputs.group_count();
    if (wants_timing(judge.options, record.verdict))
      record.measurement = measure(judge.options, run).run.measurement;
  });
}

}  // namespace indexpool::verify::policy
