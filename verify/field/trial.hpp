// Runs a kernel, ours or a stand-in, where the scenarios need it run, and returns its checks.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/stages.hpp"

namespace indexpool::verify {

// 4 heads of 32 channels, pools of 4, 4 pools selected: small, and the rules are the same.
Problem small_problem(std::vector<std::int64_t> lengths);

// The cache after the problem's whole schedule.
struct CacheTrial {
  Problem problem;
  const kernels::Kernel* stand_in = nullptr;  // null: our kernels
  std::int64_t ring = 0;                      // entries; 0: as planned for the drafts
  std::int64_t tail_block_stride = 0;         // bytes; 0: as laid out
};
// "scale", "quantiser", "schedule" (against a one-shot prefill by our kernels), "tail",
// "untouched", "guards".
std::vector<Check> try_cache(const CacheTrial& trial);

// The inputs as the steps of `timeline` find them, rejected drafts included.
CacheInputs stage_trial(const IndexerInputs& inputs, const Timeline& timeline,
                        const CacheLayout& layout, std::uint64_t seed);
// The same checks but "untouched", of what `output` holds.
std::vector<Check> judge_trial(const CacheInputs& cache, const CacheOutput& output,
                               const Problem& problem);

// One operation of the whole pipeline, each of its kernels; with all orders of the lanes when
// asked for.
std::vector<Check> try_operation(const Problem& problem, Op op, const kernels::Kernel* stand_in,
                                 bool lane_orders = false);

// A kernel of the executor, which a stand-in wraps or a graph captures.
const kernels::Kernel& executor_kernel(const char* name);

// The check "executor" of a refusal.
Check executor_refusal(const std::string& reason);

}  // namespace indexpool::verify
