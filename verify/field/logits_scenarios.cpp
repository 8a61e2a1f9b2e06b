// Bugs of the kernels that score.
#include "indexpool/verify/field/scenario.hpp"
#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/field/trial.hpp"

namespace indexpool::verify {
namespace {

std::vector<Check> try_logits(const Problem& problem, FieldSide side, LogitsFault fault) {
  return try_operation(problem, Op::logits,
                       side == FieldSide::stand_in ? &logits_stand_in(fault) : nullptr);
}

std::vector<Check> relu_missing(FieldSide side) {
  return try_logits(small_problem({37}), side, LogitsFault::relu_missing);
}

// A whole prompt in the cache: the pools of later tokens are there to be read.
std::vector<Check> open_pool_visible(FieldSide side) {
  return try_logits(small_problem({16}), side, LogitsFault::open_pool_visible);
}
std::vector<Check> future_pools_visible(FieldSide side) {
  return try_logits(small_problem({45}), side, LogitsFault::future_visible);
}

// Request 64 is the first of the second tile of the batch. The first request is the longest: its
// row of the table, read from the wrong entry on, still names pages.
std::vector<Check> batch_stride_swapped(FieldSide side) {
  std::vector<std::int64_t> lengths(65, 8);
  lengths[0] = 16;
  Problem problem = small_problem(lengths);
  problem.states_per_page = 1;
  return try_logits(problem, side, LogitsFault::batch_stride);
}

}  // namespace

std::span<const FieldRow> logits_scenarios() {
  static constexpr FieldRow rows[] = {{"relu_missing", relu_missing},
                                      {"open_pool_visible", open_pool_visible},
                                      {"future_pools_visible", future_pools_visible},
                                      {"batch_stride_swapped", batch_stride_swapped}};
  return rows;
}

}  // namespace indexpool::verify
