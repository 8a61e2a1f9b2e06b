// What the kernels of the backward pass declare to move: equal, byte for byte, to what the executor
// counts. Instructions and chains: issued.hpp.
#pragma once

#include "indexpool/kernels/backward_args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

Work declared_pool_backward(const PoolBackwardArgs& args);
Work declared_channel_pool_backward(const ChannelPoolBackwardArgs& args);
Work declared_sum_rows(const SumRowsArgs& args);
Work declared_channel_softmax_backward(const ChannelSoftmaxBackwardArgs& args);
Work declared_role_softmax_backward(const RoleSoftmaxBackwardArgs& args);
Work declared_gate_backward(const GateBackwardArgs& args);
Work declared_hidden_states_backward(const HiddenStatesBackwardArgs& args);
Work declared_hidden_gate_backward(const HiddenGateBackwardArgs& args);
Work declared_cosine_backward(const CosineBackwardArgs& args);
Work declared_additive_terms_backward(const AdditiveTermsBackwardArgs& args);
Work declared_tfidf_terms_backward(const TfidfTermsBackwardArgs& args);

}  // namespace indexpool::kernels
