// What the layers share while they are judged. Internal to verify/attention.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "indexpool/verify/attention/attention.hpp"
#include "indexpool/verify/attention/checks.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/problem_judge.hpp"

namespace indexpool::verify::attention {

using Judge = ProblemJudge;

void verify_hybrid(Judge& judge);
void verify_composite(Judge& judge);
void verify_feedback(Judge& judge);

// Operations of the hybrid layer, as far as they are files of their own.
// Both answers to a batch, as enclosures.
struct LinearBounds {
  reference::Bounded outputs, states;
};
// One form of linear attention; `other` has already been judged, or is null.
struct JudgedLinear {
  LinearBounds bounds;
  LinearOutput output;
  std::vector<float> handed_on;
};
JudgedLinear judge_linear(Judge& judge, const LinearBatch& batch, bool chunked,
                          const JudgedLinear* other);
std::vector<float> judge_sparse(Judge& judge, const SparseAttentionInputs& inputs);

inline Buffers buffers_of(const RowsOutput& output) {
  return {{"rows", bytes_of(output.rows), 1, 1}};
}

// What an operation hands on: what was stored where the verdict lets it, else what the reference
// says. The next operation takes finite numbers: 0 where binary32 may overflow.
std::vector<float> handed_on(std::span<const float> stored, const reference::Bounded& expected,
                             const Verdict& verdict);
Tensor as_tensor(std::span<const float> values, Shape shape);

// Runs `run` as often as a verdict needs, and checks(executed) on what came of it; then the clock.
template <class Run, class GetBuffers, class GetChecks>
auto judged(const Judge& judge, const Run& run, const GetBuffers& buffers, const GetChecks& checks,
            Record& record) {
  auto executed = execute(judge.options, run, buffers, OnGpu::same_bytes);
  Judge::finish(executed, checks(executed.first), record);
  if (wants_timing(judge.options, record.verdict))
    record.measurement = measure(judge.options, run).run.measurement;
  return std::move(executed.first);
}

inline Check skipped(std::string name, std::string reason) {
  Check check;
  check.name = std::move(name);
  check.status = Status::skipped;
  check.reason = std::move(reason);
  return check;
}

}  // namespace indexpool::verify::attention
