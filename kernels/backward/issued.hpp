// Warp instructions that the kernels of the backward pass issue, by pipe, and the steps of theirs
// that wait for each other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for bf16 rows: warps of some 700 shapes were
// followed through it instruction by instruction, then parts fitted that repeat with vectors,
// batches, pieces, heads, tokens or rows. They meet what was counted within 5 %, the integer pipe's
// within 10 %; where channels have weights and a group has up to three vectors of 2048, up to a
// fifth is missing. tests/kernels/backward_issued_test.cpp has some of the shapes. All vectors are
// taken to be present, quotients not to leave their short path. f16 and f32 rows differ by some
// percent. Chains: the longest path of such a warp, which issues in order. Not compared with
// hardware counters.
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
PolicyIssue cosine_backward_issue(const CosineBackwardArgs& args);
PolicyIssue additive_terms_backward_issue(const AdditiveTermsBackwardArgs& args);
PolicyIssue tfidf_terms_backward_issue(const TfidfTermsBackwardArgs& args);

}  // namespace indexpool::kernels
