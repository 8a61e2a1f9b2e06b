// Why a kernel of the backward pass does not take some arguments, in words; empty when it does.
#pragma once

#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// The arguments of one of these kernels; null when they are another's.
template <class Args>
const Args* backward_args(const OpArgs& any) {
  const auto* backward = std::get_if<BackwardArgs>(&any);
  return backward == nullptr ? nullptr : std::get_if<Args>(backward);
}
template <class Args>
const Args& the_backward_args(const OpArgs& any) {
  return std::get<Args>(std::get<BackwardArgs>(any));
}

std::optional<std::string> bad_pool_backward(const PoolBackwardArgs& args);
std::optional<std::string> bad_channel_pool_backward(const ChannelPoolBackwardArgs& args);
std::optional<std::string> bad_sum_rows(const SumRowsArgs& args);
std::optional<std::string> bad_channel_softmax_backward(const ChannelSoftmaxBackwardArgs& args);
std::optional<std::string> bad_role_softmax_backward(const RoleSoftmaxBackwardArgs& args);
std::optional<std::string> bad_gate_backward(const GateBackwardArgs& args);
std::optional<std::string> bad_hidden_states_backward(const HiddenStatesBackwardArgs& args);
std::optional<std::string> bad_hidden_gate_backward(const HiddenGateBackwardArgs& args);
std::optional<std::string> bad_cosine_backward(const CosineBackwardArgs& args);
std::optional<std::string> bad_additive_terms_backward(const AdditiveTermsBackwardArgs& args);
std::optional<std::string> bad_tfidf_terms_backward(const TfidfTermsBackwardArgs& args);

}  // namespace indexpool::kernels
