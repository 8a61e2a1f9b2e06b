// Attention over composite vectors, every sequence from its first token on.
#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {
namespace {

using Sequences = std::vector<CompositeAttentionInputs>;

Buffers buffers_of(const CompositeOutput& output) {
  return {{"queries", bytes_of(output.queries), 1, 1},
          {"keys", bytes_of(output.keys), 1, 1},
          {"outputs", bytes_of(output.outputs), 1, 1}};
}

CompositeOutput once(const Judge& judge, const Sequences& sequences) {
  return judge.once([&](StageContext& context) { return run_composite(context, sequences); });
}

// Values of all sequences, back to back.
Tensor all_values(const Sequences& sequences) {
  std::int64_t tokens = 0, at = 0;
  for (const auto& in : sequences) tokens += in.values.dim(0);
  const Tensor& first = sequences.front().values;
  Tensor all(first.dtype(), {tokens, first.dim(1), first.dim(2)});
  for (const auto& in : sequences) {
    for (std::int64_t i = 0; i < in.values.size(); ++i) all.set(at++, in.values.at(i));
  }
  return all;
}

Check sum_of_weights(const Judge& judge, Sequences sequences, const reference::Bounded& expected) {
  for (auto& in : sequences)
    in.values = filled(in.values.dtype(), in.values.shape(), [](std::int64_t) { return 1; });
  return check_softmax_sum(once(judge, sequences).outputs, expected,
                           sequences.front().values.dim(2), attended_by(sequences));
}

// "causal": with other numbers in all tokens from the middle of each sequence on, those before it
// keep their bytes, but for the sign of a zero: a masked token may add 0 times its value. The same
// is why the others are numbers: within a tile, NaN in a masked value spreads.
Check check_causal(const Judge& judge, const Sequences& sequences, const CompositeOutput& whole) {
  Sequences spoilt = sequences;
  for (auto& in : spoilt) {
    const std::int64_t half = in.values.size() / in.values.dim(0) * (in.values.dim(0) / 2);
    const auto spoil = [&](const Tensor& tensor) {
      return filled(tensor.dtype(), tensor.shape(), [&](std::int64_t i) {
        return i < half ? tensor.at(i) : static_cast<double>(i % 13 - 6);
      });
    };
    in.composites = spoil(in.composites);
    in.values = spoil(in.values);
  }
  const CompositeOutput output = once(judge, spoilt);
  std::vector<float> found, expected;
  std::size_t first = 0;
  for (const auto& in : sequences) {
    const auto size = static_cast<std::size_t>(in.values.size()),
               half = size / static_cast<std::size_t>(in.values.dim(0)) *
                      static_cast<std::size_t>(in.values.dim(0) / 2);
    const auto earlier = [&](const std::vector<float>& from, std::vector<float>& to) {
      const auto part = std::span(from).subspan(first, half);
      for (const float x : part) to.push_back(x + 0.0f);  // -0 becomes 0
    };
    earlier(output.outputs, found);
    earlier(whole.outputs, expected);
    first += size;
  }
  if (expected.empty()) return skipped("causal", "no sequence has two tokens");
  return check_equal("causal", "earlier tokens, later ones being others", found, expected);
}

}  // namespace

void verify_composite(Judge& judge) {
  const Sequences sequences = make_composite(judge.problem);
  std::vector<reference::Bounded> parts;
  for (const auto& in : sequences) parts.push_back(reference::composite_attention(in));
  const reference::Bounded expected = joined(parts);
  judge.record(Op::composite_attention, [&](Record& record) {
    const std::int64_t width = sequences.front().values.dim(2);
    judged(
        judge, [&](StageContext& context) { return run_composite(context, sequences); },
        [](const CompositeOutput& o) { return buffers_of(o); },
        [&](const CompositeOutput& o) {
          return std::vector<Check>{
              check_enclosed("bound", o.outputs, expected, width, "rows of outputs"),
              check_convexity(o.outputs, expected, all_values(sequences), width,
                              attended_by(sequences)),
              sum_of_weights(judge, sequences, expected), check_causal(judge, sequences, o)};
        },
        record);
  });
}

}  // namespace indexpool::verify::attention
