// What the attention kernels declare to move: equal, byte for byte, to what the executor counts.
// Instructions and chains are not declared.
#pragma once

#include "indexpool/kernels/attention/geometry.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

Work declared_safe_gate(const SafeGateArgs& args);
Work declared_linear_step(const LinearAttentionArgs& args);
Work declared_linear_chunk(const LinearAttentionArgs& args);
Work declared_sparse_attention(const SparseAttentionArgs& args);
Work declared_gate_fusion(const GateFusionArgs& args);

}  // namespace indexpool::kernels
