// Warp instructions that the kernels of the published forms issue, by pipe, and the steps of theirs
// that wait for each other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for bf16 vectors of one piece (head_dim 256 and
// below), block of code by block of code; what repeats with pieces, vectors or channels is scaled.
// f16 and f32 rows differ by some percent. Not compared with hardware counters.
#pragma once

#include "indexpool/kernels/policy_args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

// A launch's instructions of all warps together, and its chain.
struct PolicyIssue {
  Instructions instructions;
  Chain chain;
};
// `work` with both.
inline Work with_issue(Work work, const PolicyIssue& issue) {
  work.instructions = issue.instructions;
  work.chain = issue.chain;
  return work;
}
PolicyIssue role_weights_issue(const RoleWeightsArgs& args);
PolicyIssue additive_weights_issue(const AdditiveWeightsArgs& args);
PolicyIssue tfidf_weights_issue(const TfidfWeightsArgs& args);
PolicyIssue hidden_gates_issue(const HiddenGatesArgs& args);
PolicyIssue gated_weights_issue(const GatedWeightsArgs& args);
PolicyIssue channel_weights_issue(const ChannelWeightsArgs& args);
PolicyIssue weighted_pool_issue(const WeightedPoolArgs& args);
PolicyIssue block_max_issue(const BlockMaxArgs& args);

}  // namespace indexpool::kernels
