// Warp instructions that the kernels of the backward pass issue, by pipe, and the steps of theirs
// that wait for each other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for bf16 rows: warps of many shapes were followed
// through it instruction by instruction, and what was found put into parts that repeat with
// vectors, batches, pieces, heads, tokens or rows; tests/kernels/backward_issued_test.cpp has some
// of the shapes. All vectors are taken to be present. f16 and f32 rows differ by some percent. Not
// compared with hardware counters.
#pragma once

#include "indexpool/kernels/backward_args.hpp"
#include "indexpool/kernels/policy/issued.hpp"

namespace indexpool::kernels {

PolicyIssue pool_backward_issue(const PoolBackwardArgs& args);
PolicyIssue channel_pool_backward_issue(const ChannelPoolBackwardArgs& args);
PolicyIssue sum_rows_issue(const SumRowsArgs& args);
PolicyIssue channel_softmax_backward_issue(const ChannelSoftmaxBackwardArgs& args);
PolicyIssue role_softmax_backward_issue(const RoleSoftmaxBackwardArgs& args);
PolicyIssue gate_backward_issue(const GateBackwardArgs& args);
PolicyIssue hidden_states_backward_issue(const HiddenStatesBackwardArgs& args);
PolicyIssue hidden_gate_backward_issue(const HiddenGateBackwardArgs& args);

}  // namespace indexpool::kernels
