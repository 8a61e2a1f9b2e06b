// The reference in binary64 inside its own enclosures in binary128: a spot check on the arithmetic
// of the oracle, for cases that nobody else has answered.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

using reference::Bounded;
using reference::Precision;

constexpr std::int64_t most_tokens = 48;  // binary128 is a hundred times slower

Tensor first_rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  Shape shape = tensor.shape();
  const std::int64_t width = tensor.size() / std::max<std::int64_t>(shape[0], 1);
  shape[0] = count;
  Tensor part(tensor.dtype(), shape);
  for (std::int64_t i = 0; i < count * width; ++i) part.set(i, tensor.at(first * width + i));
  return part;
}

// The first tokens of the longest sequence.
IndexerInputs shortened(const IndexerInputs& inputs) {
  const auto longest = std::ranges::max_element(inputs.sequences, {}, &Sequence::length);
  const std::int64_t count = std::min(longest->length, most_tokens), first = longest->first_row;
  IndexerInputs part = inputs;
  part.sequences = {{longest->first_key, count, 0}};
  part.keys = first_rows(inputs.keys, first, count);
  part.gate_scores = first_rows(inputs.gate_scores, first, count);
  part.queries = first_rows(inputs.queries, first, count);
  part.head_weights = first_rows(inputs.head_weights, first, count);
  return part;
}

Check compare(const Bounded& rough, const Bounded& fine) {
  Tally tally("precision");
  for (std::size_t i = 0; i < rough.value.size(); ++i) {
    if (rough.value[i] != rough.value[i]) continue;  // a pool not visible
    tally.compare(reference::admits(fine.low[i], fine.high[i], rough.value[i]),
                  utilisation(rough.value[i], fine.value[i], fine.low[i], fine.high[i]), [&] {
                    return fmt::format(
                        "element {}: {:.17g} in binary64, {:.17g} to {:.17g} in "
                        "binary128",
                        i, rough.value[i], fine.low[i], fine.high[i]);
                  });
  }
  return std::move(tally).finish();
}

Bounded logits_of(const IndexerInputs& inputs, const std::vector<double>& pools,
                  Precision precision) {
  reference::LogitOperands operands;
  operands.heads = inputs.config.index_n_heads;
  operands.head_dim = inputs.config.index_head_dim;
  operands.logit_scale = inputs.logit_scale;
  const std::vector<double> queries = Bounded::exact(inputs.queries).value;
  const std::vector<double> head_weights = Bounded::exact(inputs.head_weights).value;
  operands.queries = queries;
  operands.head_weights = head_weights;
  operands.pools = pools;
  std::vector<std::int64_t> visible;
  for (std::int64_t i = 0; i < inputs.rows(); ++i) {
    visible.push_back(reference::visible_pools(i, inputs.config.index_kpool));
  }
  return reference::logits(operands, visible, reference::f32_any_order(), precision);
}

}  // namespace

std::vector<Record> precision_records(const Case& test_case, const Options& options) {
  const IndexerInputs inputs = shortened(test_case.inputs);
  std::vector<Record> records;
  const auto add = [&](Op op, const Bounded& rough, const Bounded& fine) {
    Record record = start_record(test_case, options, op);
    record.implementation = "reference, binary64";
    record.reference = "reference, binary128";
    record.verdict = assemble({compare(rough, fine)});
    record.verdict.rows = rough.shape.empty() ? 0 : rough.shape[0];
    record.values["tokens"] = static_cast<double>(inputs.rows());
    records.push_back(std::move(record));
  };
  const auto pooled = reference::pool(inputs);
  add(Op::pool, pooled.rotated, reference::pool(inputs, Precision::binary128).rotated);
  if (inputs.mode.quantised()) {
    add(Op::quantize_query, reference::rotate_queries(inputs),
        reference::rotate_queries(inputs, Precision::binary128));
  }
  add(Op::logits, logits_of(inputs, pooled.rotated.value, Precision::binary64),
      logits_of(inputs, pooled.rotated.value, Precision::binary128));
  return records;
}

}  // namespace indexpool::verify
