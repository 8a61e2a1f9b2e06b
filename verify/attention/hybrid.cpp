// A hybrid layer, and its gates: the safe one of the decays, and the one that mixes the branches.
#include <algorithm>
#include <cmath>
#include <limits>

#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {
namespace {

// The decays, as stored.
Tensor judge_safe_gate(Judge& judge, const SafeGateInputs& inputs) {
  const reference::Bounded expected = reference::safe_gate(inputs);
  std::vector<float> decays = handed_on({}, expected, {});
  judge.record(Op::safe_gate, [&](Record& record) {
    const auto output = judged(
        judge, [&](StageContext& context) { return run_safe_gate(context, inputs); },
        [](const RowsOutput& o) { return buffers_of(o); },
        [&](const RowsOutput& o) {
          return std::vector<Check>{
              check_enclosed("bound", o.rows, expected, inputs.features.dim(2), "rows of decays"),
              check_decay_range(o.rows)};
        },
        record);
    decays = handed_on(output.rows, expected, record.verdict);
  });
  return as_tensor(decays, inputs.features.shape());
}

// "saturation": at either extreme of the gate the outputs are that branch, bit for bit, whatever
// the other holds.
Check check_saturation(const Judge& judge, const GateFusionInputs& inputs) {
  const Tensor no_numbers = filled(DType::f32, inputs.a.shape(), [](std::int64_t i) {
    return i % 2 == 0 ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
  });
  const auto at = [&](float logit, const Tensor& branch, const char* what) {
    GateFusionInputs extreme = inputs;
    (logit > 0 ? extreme.b : extreme.a) = no_numbers;
    extreme.gate_logits =
        filled(DType::f32, inputs.gate_logits.shape(), [&](std::int64_t) { return logit; });
    const RowsOutput output =
        judge.once([&](StageContext& context) { return run_fusion(context, extreme); });
    return check_equal("saturation", what, output.rows, branch.as<float>());
  };
  return merge(at(gate_saturation, inputs.a, "all of branch a"),
               at(-gate_saturation, inputs.b, "all of branch b"));
}

// "mixing": the problem has gates between the extremes, and branches that differ.
Check check_mixes(const GateFusionInputs& inputs) {
  Check check;
  check.name = "mixing";
  const auto logits = inputs.gate_logits.as<float>();
  const auto a = inputs.a.as<float>(), b = inputs.b.as<float>();
  const std::size_t channels = a.size() / std::max<std::size_t>(1, logits.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(logits[i / channels]) < gate_saturation && a[i] != b[i]) ++check.compared;
  }
  if (check.compared == 0) {
    check.status = Status::untrusted;
    check.reason = "both branches are alike wherever the gate is between its extremes";
  }
  return check;
}

void judge_fusion(Judge& judge, const GateFusionInputs& inputs) {
  const reference::Bounded expected = reference::gate_fusion(inputs);
  judge.record(Op::gate_fusion, [&](Record& record) {
    judged(
        judge, [&](StageContext& context) { return run_fusion(context, inputs); },
        [](const RowsOutput& o) { return buffers_of(o); },
        [&](const RowsOutput& o) {
          return std::vector<Check>{
              check_enclosed("bound", o.rows, expected, inputs.a.dim(2), "rows of outputs"),
              check_mixes(inputs), check_saturation(judge, inputs)};
        },
        record);
  });
}

}  // namespace

void verify_hybrid(Judge& judge) {
  HybridInputs in = make_hybrid(judge.problem);
  const auto progress = [&](const char* what) {
    if (judge.options.progress) judge.options.progress(describe(judge.problem) + ": " + what);
  };
  const Shape shape = in.fusion.a.shape();
  progress("safe_gate");
  in.linear.rows.log_decay = judge_safe_gate(judge, in.gate);
  progress("linear_attention");
  const JudgedLinear by_token = judge_linear(judge, in.linear, false, nullptr);
  judge_linear(judge, in.linear, true, &by_token);
  progress("sparse_attention");
  in.fusion.a = as_tensor(by_token.handed_on, shape);
  in.fusion.b = as_tensor(judge_sparse(judge, in.sparse), shape);
  progress("gate_fusion");
  judge_fusion(judge, in.fusion);
}

}  // namespace indexpool::verify::attention
