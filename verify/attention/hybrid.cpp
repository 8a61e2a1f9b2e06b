// A hybrid layer: safe gate, linear attention in both forms, attention over selected pools, and the
// gate that mixes the branches.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {
namespace {

Buffers buffers_of(const RowsOutput& output) { return {{"rows", bytes_of(output.rows), 1, 1}}; }
Buffers buffers_of(const LinearOutput& output) {
  return {{"outputs", bytes_of(output.outputs), 1, 1}, {"states", bytes_of(output.states), 1, 1}};
}

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

// Both answers to a batch, as enclosures.
struct LinearBounds {
  reference::Bounded outputs, states;
};
LinearBounds bounds_of(const LinearBatch& batch, bool chunked) {
  std::vector<reference::Bounded> outputs, states;
  for (std::size_t s = 0; s < batch.lengths.size(); ++s) {
    const LinearAttentionInputs one = sequence_of(batch, s);
    reference::LinearAttention expected =
        chunked ? reference::linear_attention_chunked(one, kernels::linear_chunk_tokens)
                : reference::linear_attention(one);
    outputs.push_back(std::move(expected.outputs));
    states.push_back(std::move(expected.state));
  }
  return {joined(outputs), joined(states)};
}

// "resume": two launches, the second from the states that the first left, give the bytes of one.
// Chunks begin where a launch does, so the cut lies between two of them.
Check check_resume(const Judge& judge, const LinearBatch& batch, bool chunked,
                   const LinearOutput& whole) {
  const std::int64_t unit = chunked ? kernels::linear_chunk_tokens : 1;
  const std::vector<std::int64_t> none(batch.lengths.size(), 0);
  std::vector<std::int64_t> middle;
  for (const std::int64_t length : batch.lengths)
    middle.push_back(
        (length / 2 + unit - 1) / unit * unit < length ? (length / 2 + unit - 1) / unit * unit : 0);
  if (std::ranges::all_of(middle, [](std::int64_t at) { return at == 0; }))
    return skipped("resume", "no sequence is long enough to be cut");
  const auto run = [&](const LinearBatch& part) {
    return judge.once([&](StageContext& context) { return run_linear(context, part, chunked); });
  };
  const LinearOutput first = run(cut(batch, none, middle));
  LinearBatch rest = cut(batch, middle, batch.lengths);
  rest.states = as_tensor(first.states, batch.states.shape());
  const LinearOutput second = run(rest);
  std::vector<float> outputs;
  const auto row = static_cast<std::size_t>(batch.rows.values.dim(1) * batch.rows.values.dim(2));
  std::size_t from_first = 0, from_second = 0;
  const auto take = [&](const LinearOutput& part, std::size_t& at, std::int64_t tokens) {
    const std::size_t count = static_cast<std::size_t>(tokens) * row;
    const auto values = std::span(part.outputs).subspan(at, count);
    outputs.insert(outputs.end(), values.begin(), values.end());
    at += count;
  };
  for (std::size_t s = 0; s < batch.lengths.size(); ++s) {
    take(first, from_first, middle[s]);
    take(second, from_second, batch.lengths[s] - middle[s]);
  }
  return merge(check_equal("resume", "outputs", outputs, whole.outputs),
               check_equal("resume", "states", second.states, whole.states));
}

// One form of linear attention; `other` has already been judged, or is null.
struct JudgedLinear {
  LinearBounds bounds;
  LinearOutput output;
  std::vector<float> handed_on;
};
JudgedLinear judge_linear(Judge& judge, const LinearBatch& batch, bool chunked,
                          const JudgedLinear* other) {
  JudgedLinear linear{bounds_of(batch, chunked), {}, {}};
  linear.handed_on = handed_on({}, linear.bounds.outputs, {});
  judge.record(Op::linear_attention, [&](Record& record) {
    const std::int64_t width = batch.rows.values.dim(2);
    linear.output = judged(
        judge, [&](StageContext& context) { return run_linear(context, batch, chunked); },
        [](const LinearOutput& o) { return buffers_of(o); },
        [&](const LinearOutput& o) {
          std::vector<Check> checks = {
              check_enclosed("bound", o.outputs, linear.bounds.outputs, width, "rows of outputs"),
              check_enclosed("state", o.states, linear.bounds.states, width, "rows of states"),
              check_resume(judge, batch, chunked, o)};
          if (other != nullptr && !other->output.outputs.empty())
            checks.push_back(check_agreement(other->output.outputs, other->bounds.outputs,
                                             o.outputs, linear.bounds.outputs));
          return checks;
        },
        record);
    linear.handed_on = handed_on(linear.output.outputs, linear.bounds.outputs, record.verdict);
  });
  return linear;
}

// "softmax_sum" of a run in which every value is 1.
Check sum_of_weights(const Judge& judge, const SparseAttentionInputs& inputs,
                     const reference::Bounded& expected) {
  SparseAttentionInputs ones = inputs;
  ones.values =
      filled(inputs.values.dtype(), inputs.values.shape(), [](std::int64_t) { return 1; });
  const RowsOutput output =
      judge.once([&](StageContext& context) { return run_sparse(context, ones); });
  return check_softmax_sum(output.rows, expected, inputs.values.dim(2), attended_by(inputs));
}

// The inputs of row `row` alone, with NaN in every token it does not select.
SparseAttentionInputs alone(const SparseAttentionInputs& inputs, std::int64_t row) {
  const std::int64_t width = inputs.selection.dim(1), heads = inputs.queries.dim(1),
                     dim = inputs.queries.dim(2);
  SparseAttentionInputs one = inputs;
  one.queries = filled(inputs.queries.dtype(), {1, heads, dim},
                       [&](std::int64_t i) { return inputs.queries.at(row * heads * dim + i); });
  one.selection = filled(DType::i32, {1, width},
                         [&](std::int64_t i) { return inputs.selection.at(row * width + i); });
  const auto selection = one.selection.as<std::int32_t>();
  for (Tensor SparseAttentionInputs::*member :
       {&SparseAttentionInputs::keys, &SparseAttentionInputs::values}) {
    const Tensor& whole = inputs.*member;
    const std::int64_t per_token = whole.dim(1) * whole.dim(2);
    one.*member = filled(whole.dtype(), whole.shape(), [&](std::int64_t i) {
      const bool seen = std::ranges::find(selection, i / per_token) != selection.end();
      return seen ? whole.at(i) : std::nan("");
    });
  }
  return one;
}

// "selected_only": a query alone, among tokens of which only the selected ones are numbers, gives
// the bytes it gave among all. Up to four queries.
Check check_selected_only(const Judge& judge, const SparseAttentionInputs& inputs,
                          const RowsOutput& all) {
  constexpr std::int64_t most_rows = 4;
  const std::int64_t rows = inputs.queries.dim(0), step = (rows + most_rows - 1) / most_rows;
  const auto size = static_cast<std::size_t>(inputs.queries.dim(1) * inputs.values.dim(2));
  std::vector<Check> checks;
  for (std::int64_t row = rows - 1; row >= 0; row -= step) {
    const SparseAttentionInputs one = alone(inputs, row);
    const RowsOutput output =
        judge.once([&](StageContext& context) { return run_sparse(context, one); });
    checks.push_back(
        check_equal("selected_only", fmt::format("query {} among NaN", row), output.rows,
                    std::span(all.rows).subspan(static_cast<std::size_t>(row) * size, size)));
  }
  Check folded = checks.front();
  for (std::size_t i = 1; i < checks.size(); ++i) folded = merge(std::move(folded), checks[i]);
  return folded;
}

// A row whose scores all overflow to -infinity has nothing to weigh: the kernel reads no values,
// which the declared traffic, knowing the selection only, cannot foresee.
void excuse_traffic(const reference::Bounded& expected, Record& record) {
  bool open = false;
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    open = open || reference::is_open(expected.low[i], expected.high[i]);
  if (!open) return;
  std::vector<Check> checks = record.verdict.checks;
  for (Check& check : checks) {
    if (check.name == "traffic" && check.status == Status::failed)
      check = skipped("traffic", "scores may overflow binary32, and such rows end early");
  }
  record.verdict = assemble(std::move(checks));
}

std::vector<float> judge_sparse(Judge& judge, const SparseAttentionInputs& inputs) {
  const reference::Bounded expected = reference::sparse_attention(inputs);
  std::vector<float> outputs = handed_on({}, expected, {});
  judge.record(Op::sparse_attention, [&](Record& record) {
    const std::int64_t width = inputs.values.dim(2);
    const auto output = judged(
        judge, [&](StageContext& context) { return run_sparse(context, inputs); },
        [](const RowsOutput& o) { return buffers_of(o); },
        [&](const RowsOutput& o) {
          return std::vector<Check>{
              check_enclosed("bound", o.rows, expected, width, "rows of outputs"),
              check_convexity(o.rows, expected, inputs.values, width, attended_by(inputs)),
              sum_of_weights(judge, inputs, expected), check_selected_only(judge, inputs, o)};
        },
        record);
    excuse_traffic(expected, record);
    outputs = handed_on(output.rows, expected, record.verdict);
  });
  return outputs;
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
