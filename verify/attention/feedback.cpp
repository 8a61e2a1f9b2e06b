// Attention mass to access counts, and the tf-idf weights of the next step from what was stored.
#include "indexpool/reference/policy.hpp"
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
              check_counts(expected, o.accesses, o.groups_accessed, in.terms())};
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
