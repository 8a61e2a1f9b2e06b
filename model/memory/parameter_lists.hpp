// Tensors of one kind of attention or feed-forward. Internal to the layer.
#pragma once

#include <vector>

#include "indexpool/model/memory/parameters.hpp"

namespace indexpool {

std::vector<ParameterTensor> attention_parameters(const Architecture& architecture,
                                                  const LayerSpec& layer);
std::vector<ParameterTensor> dense_parameters(const Architecture& architecture);
std::vector<ParameterTensor> expert_parameters(const Architecture& architecture, MlpKind kind);

}  // namespace indexpool
