// Attention mass to access counts, and the tf-idf weights of the next step from what was stored.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/reference/policy.hpp"
#include "indexpool/verify/attention/draw.hpp"
#include "indexpool/verify/attention/layers.hpp"
#include "indexpool/verify/policy/checks.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::attention {
namespace {

Buffers buffers_of(const FeedbackOutput& output) {
  return {{"accesses", bytes_of(output.accesses)},
          {"groups accessed", bytes_of(output.groups_accessed)}};
}
Buffers buffers_of(const policy::WeightsOutput& output) {
  return {{"pool weights", bytes_of(output.pool_weights), 1, 1}};
}

Tensor counts_of(const std::vector<std::int32_t>& counts, const Shape& shape) {
  Tensor tensor(DType::i32, shape);
  std::copy(counts.begin(), counts.end(), tensor.as<std::int32_t>().begin());
  return tensor;
}

// "even_attention": an even share of a power of two is the mean exactly, which accesses nothing;
// one step above it everything attended is accessed.
Check check_even_attention(const Judge& judge, const FeedbackOperands& in) {
  const auto before = in.terms().accesses.as<std::int32_t>();
  const std::size_t attended = std::bit_floor(before.size()), first = before.size() - attended;
  const float mean = 1 / static_cast<float>(attended);
  Tally tally("even_attention");
  for (const bool above : {false, true}) {
    FeedbackInputs even = in.step;
    even.attention_mass = filled(DType::f32, in.step.attention_mass.shape(), [&](std::int64_t i) {
      if (static_cast<std::size_t>(i) < first) return 0.0f;
      return above ? std::nextafter(mean, 2.0f) : mean;
    });
    const FeedbackOutput output =
        judge.once([&](StageContext& context) { return run_feedback(context, even, in.terms()); });
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool counts = above && i >= first && before[i] < most_accesses;
      tally.compare(output.accesses[i] == before[i] + (counts ? 1 : 0), [&] {
        return fmt::format("slot {}: {} accesses after {} with {} mean attention", i,
                           output.accesses[i], before[i], above ? "more than" : "exactly");
      });
    }
  }
  return std::move(tally).finish();
}

// The terms after the step, as stored where they are right.
AccessTerms judge_feedback(Judge& judge, const FeedbackOperands& in) {
  const AccessTerms expected = reference::attention_feedback(in.step, in.terms());
  AccessTerms next = expected;
  judge.record(Op::attention_feedback, [&](Record& record) {
    const auto output = judged(
        judge, [&](StageContext& context) { return run_feedback(context, in.step, in.terms()); },
        [](const FeedbackOutput& o) { return buffers_of(o); },
        [&](const FeedbackOutput& o) {
          return std::vector<Check>{
              check_counts(expected, o.accesses, o.groups_accessed, in.terms()),
              check_even_attention(judge, in)};
        },
        record);
    if (!usable(record.verdict)) return;
    next.accesses = counts_of(output.accesses, expected.accesses.shape());
    next.groups_accessed = counts_of(output.groups_accessed, expected.accesses.shape());
  });
  return next;
}

void judge_next_weights(Judge& judge, const PoolingInputs& before, const AccessTerms& next) {
  PoolingInputs after = before;
  after.weights = next;
  const reference::Bounded expected = reference::pool_weights(after),
                           expected_before = reference::pool_weights(before);
  judge.record(Op::pool_weights, [&](Record& record) {
    const policy::WeightsOutput old =
        judge.once([&](StageContext& context) { return policy::run_weights(context, before); });
    judged(
        judge, [&](StageContext& context) { return policy::run_weights(context, after); },
        [](const policy::WeightsOutput& o) { return buffers_of(o); },
        [&](const policy::WeightsOutput& o) {
          return std::vector<Check>{
              policy::check_weights(after, o.pool_weights, expected),
              policy::check_weight_range(after, o.pool_weights, expected),
              check_response(old.pool_weights, expected_before, o.pool_weights, expected)};
        },
        record);
  });
}

}  // namespace

void verify_feedback(Judge& judge) {
  const FeedbackOperands in = make_feedback(judge.problem);
  indexpool::validate(in.pooling);
  judge_next_weights(judge, in.pooling, judge_feedback(judge, in));
}

}  // namespace indexpool::verify::attention
