// Bugs of the kernels that write the cache.
#include "indexpool/verify/field/scenario.hpp"
#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/field/trial.hpp"

namespace indexpool::verify {
namespace {

const kernels::Kernel* kernel_of(FieldSide side, CacheFault fault) {
  return side == FieldSide::stand_in ? &cache_stand_in(fault) : nullptr;
}

// 5 tokens arrive at once, 7 one by one: pools 1 and 2 close in decode steps.
std::vector<Check> tail_stash_follows_pool_slot(FieldSide side) {
  CacheTrial trial{small_problem({12}), kernel_of(side, CacheFault::stash_follows_pool_slot)};
  trial.problem.schedule.prefill_tokens = 5;
  return try_cache(trial);
}

std::vector<Check> tail_never_written(FieldSide side) {
  CacheTrial trial{small_problem({13}), kernel_of(side, CacheFault::stash_dropped)};
  trial.problem.schedule.prefill_tokens = 5;
  return try_cache(trial);
}

// 128 channels of bf16 and a ring of 4: 2048 B a block, in a view with 38,016 B between blocks.
std::vector<Check> tail_block_stride_ignored(FieldSide side) {
  constexpr std::int64_t stride_of_the_view = 38016;
  CacheTrial trial{small_problem({13, 9, 14, 6}), kernel_of(side, CacheFault::tail_stride_dense)};
  trial.problem.indexer.index_head_dim = 128;
  trial.tail_block_stride = stride_of_the_view;
  return try_cache(trial);
}

// 4 drafts a step from position 2 on, of which some are rejected.
std::vector<Check> draft_keys_enter_pools(FieldSide side) {
  CacheTrial trial{small_problem({40})};
  trial.problem.schedule = {2, 0, 4};
  if (side == FieldSide::stand_in) trial.ring = trial.problem.indexer.index_kpool;
  return try_cache(trial);
}

std::vector<Check> speculative_plan_left_zero(FieldSide side) {
  CacheTrial trial{small_problem({9, 14}), kernel_of(side, CacheFault::plan_left_zero)};
  trial.problem.schedule = {4, 0, 3};
  return try_cache(trial);
}

}  // namespace

std::span<const FieldRow> cache_scenarios() {
  static constexpr FieldRow rows[] = {
      {"tail_stash_follows_pool_slot", tail_stash_follows_pool_slot},
      {"tail_never_written", tail_never_written},
      {"tail_block_stride_ignored", tail_block_stride_ignored},
      {"draft_keys_enter_pools", draft_keys_enter_pools},
      {"speculative_plan_left_zero", speculative_plan_left_zero}};
  return rows;
}

}  // namespace indexpool::verify
