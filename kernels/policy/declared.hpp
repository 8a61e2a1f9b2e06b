// What the kernels of the published forms declare to move: equal, byte for byte, to what the
// executor counts. Instructions and chains are not declared.
#pragma once

#include "indexpool/kernels/policy_args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

Work declared_role_weights(const RoleWeightsArgs& args);
Work declared_additive_weights(const AdditiveWeightsArgs& args);
Work declared_tfidf_weights(const TfidfWeightsArgs& args);
Work declared_hidden_gates(const HiddenGatesArgs& args);
Work declared_gated_weights(const GatedWeightsArgs& args);
Work declared_channel_weights(const ChannelWeightsArgs& args);
Work declared_weighted_pool(const WeightedPoolArgs& args);
Work declared_block_max(const BlockMaxArgs& args);

}  // namespace indexpool::kernels
