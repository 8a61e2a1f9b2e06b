// Why a kernel of the published forms does not take some arguments, in words; empty when it does.
#pragma once

#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// The arguments of one of these kernels; null when they are another's.
template <class Args>
const Args* policy_args(const OpArgs& any) {
  const auto* policy = std::get_if<PolicyArgs>(&any);
  return policy == nullptr ? nullptr : std::get_if<Args>(policy);
}
template <class Args>
const Args& the_policy_args(const OpArgs& any) {
  return std::get<Args>(std::get<PolicyArgs>(any));
}

std::optional<std::string> bad_role_weights(const RoleWeightsArgs& args);
std::optional<std::string> bad_additive_weights(const AdditiveWeightsArgs& args);
std::optional<std::string> bad_tfidf_weights(const TfidfWeightsArgs& args);
std::optional<std::string> bad_hidden_gates(const HiddenGatesArgs& args);
std::optional<std::string> bad_gated_weights(const GatedWeightsArgs& args);
std::optional<std::string> bad_channel_weights(const ChannelWeightsArgs& args);
std::optional<std::string> bad_weighted_pool(const WeightedPoolArgs& args);
std::optional<std::string> bad_block_max(const BlockMaxArgs& args);

}  // namespace indexpool::kernels
