// Bugs of the kernels that select, and of who hands their selections on.
#include <optional>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/field/scenario.hpp"
#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/field/trial.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

// The operation meets the problem's own logits and logits made to be difficult: NaN, infinities,
// plateaus, ranges narrower than half precision resolves.
std::vector<Check> try_topk(const char* fill, FieldSide side, TopkFault fault,
                            bool lane_orders = false) {
  Problem problem = small_problem({77});
  problem.fill = fill;
  return try_operation(problem, Op::topk,
                       side == FieldSide::stand_in ? &topk_stand_in(fault) : nullptr, lane_orders);
}

std::vector<Check> short_rows_uninitialised(FieldSide side) {
  return try_topk("normal", side, TopkFault::short_rows_unfilled);
}
std::vector<Check> nan_logits_selected(FieldSide side) {
  return try_topk("normal", side, TopkFault::nan_first);
}
std::vector<Check> candidate_buffer_overflows(FieldSide side) {
  return try_topk("monotone", side, TopkFault::candidates_lost);
}
std::vector<Check> plateau_ties_unordered(FieldSide side) {
  return try_topk("relu_plateau", side, TopkFault::ties_hashed);
}
std::vector<Check> ranks_disagree(FieldSide side) {
  return try_topk("ties", side, TopkFault::ties_by_arrival, true);
}
std::vector<Check> half_precision_keys(FieldSide side) {
  return try_topk("normal", side, TopkFault::f16_keys);
}
std::vector<Check> unsorted_result_cut(FieldSide side) {
  return try_topk("normal", side, TopkFault::cut_by_arrival, true);
}
std::vector<Check> only_last_chunk_selected(FieldSide side) {
  return try_topk("normal", side, TopkFault::last_chunk_only);
}
std::vector<Check> short_path_replayed(FieldSide side) {
  return try_topk("normal", side, TopkFault::first_pools_always);
}

// What layers without an indexer read: the selection of the last layer that has one.
struct SelectionHolder {
  std::optional<std::vector<std::int32_t>> selection;
};

// Two forwards of one batch with other logits. A layer computes its selection when the holder has
// none yet; the stand-in keeps one holder for both forwards.
std::vector<Check> selection_of_last_forward(FieldSide side) {
  const Problem problem = small_problem({77});
  const IndexerInputs inputs = make_case(problem).inputs;
  const std::int64_t stride = logits_stride(inputs, problem.seed);
  SelectionHolder kept;
  std::vector<Check> checks;
  for (const std::uint64_t forward : {1, 2}) {
    SelectionHolder own;
    SelectionHolder& holder = side == FieldSide::stand_in ? kept : own;
    const std::vector<float> logits = adversarial_logits(inputs, stride, forward);
    if (!holder.selection) {
      const auto target = kernels::make_simt_target();
      StageContext context{*target, make_lookup({}), false};
      holder.selection = run_topk(context, {inputs, logits, stride}).selection;
    }
    checks.push_back(check_tie_rule(inputs, logits, stride, *holder.selection));
  }
  return checks;
}

}  // namespace

std::span<const FieldRow> topk_scenarios() {
  static constexpr FieldRow rows[] = {{"short_rows_uninitialised", short_rows_uninitialised},
                                      {"nan_logits_selected", nan_logits_selected},
                                      {"candidate_buffer_overflows", candidate_buffer_overflows},
                                      {"plateau_ties_unordered", plateau_ties_unordered},
                                      {"ranks_disagree", ranks_disagree},
                                      {"half_precision_keys", half_precision_keys},
                                      {"unsorted_result_cut", unsorted_result_cut},
                                      {"only_last_chunk_selected", only_last_chunk_selected},
                                      {"short_path_replayed", short_path_replayed},
                                      {"selection_of_last_forward", selection_of_last_forward}};
  return rows;
}

}  // namespace indexpool::verify
