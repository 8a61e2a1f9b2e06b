// Linear attention of a hybrid layer, by token and in chunks.
#include <algorithm>

#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {
namespace {

Buffers buffers_of(const LinearOutput& output) {
  return {{"outputs", bytes_of(output.outputs), 1, 1}, {"states", bytes_of(output.states), 1, 1}};
}

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

}  // namespace

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

}  // namespace indexpool::verify::attention
