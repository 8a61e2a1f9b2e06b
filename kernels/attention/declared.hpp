// What the attention kernels declare to move: equal, byte for byte, to what the executor counts.
// Instructions and chains come from issued.hpp.
#pragma once

#include "indexpool/kernels/attention/geometry.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

Work declared_safe_gate(const SafeGateArgs& args);
Work declared_linear_step(const LinearAttentionArgs& args);
Work declared_linear_chunk(const LinearAttentionArgs& args);
Work declared_sparse_attention(const SparseAttentionArgs& args);
Work declared_gate_fusion(const GateFusionArgs& args);
Work declared_decompress(const DecompressArgs& args);
Work declared_composite_attention(const CompositeAttentionArgs& args);
Work declared_count_attended(const CountAttendedArgs& args);
Work declared_attention_feedback(const AttentionFeedbackArgs& args);

// Of `count` blocks or warps that are alike.
Traffic times(std::int64_t count, const Traffic& one);

}  // namespace indexpool::kernels
