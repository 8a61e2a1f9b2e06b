// Warp instructions that the attention kernels issue, by pipe, and the steps of theirs that wait
// for each other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for bf16 rows of 128 channels, block of code by
// block of code; what repeats with channels, tokens or tiles is scaled. Where warps or rows differ
// (a token's slots, an empty selection) the usual one stands for all. Not compared with hardware
// counters.
#pragma once

#include "indexpool/kernels/attention_args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

// Each sets `instructions` and `chain` of a launch's work.
void issue_safe_gate(const SafeGateArgs& args, Work& work);
void issue_gate_fusion(const GateFusionArgs& args, Work& work);
void issue_sparse_attention(const SparseAttentionArgs& args, Work& work);
void issue_linear_step(const LinearAttentionArgs& args, Work& work);
void issue_linear_chunk(const LinearAttentionArgs& args, Work& work);
void issue_decompress(const DecompressArgs& args, Work& work);
void issue_composite_attention(const CompositeAttentionArgs& args, Work& work);
void issue_count_attended(const CountAttendedArgs& args, Work& work);
void issue_attention_feedback(const AttentionFeedbackArgs& args, Work& work);

}  // namespace indexpool::kernels
