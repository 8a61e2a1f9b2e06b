// Attention of a hybrid layer over selected pools.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {
namespace {

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

}  // namespace

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

}  // namespace indexpool::verify::attention
