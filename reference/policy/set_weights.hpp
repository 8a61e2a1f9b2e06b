// Pool weights of one set, by every rule. Internal to the layer.
#pragma once

#include <vector>

#include "indexpool/reference/policy/ball.hpp"
#include "indexpool/reference/policy/operands.hpp"

namespace indexpool::reference {

// [m], or [m, D] for per-channel policies; of a group (where a set is one) absent vectors have
// weight 0. Instantiated for double and Quad.
template <class T>
std::vector<Ball<T>> set_weights(const PoolingInputs& inputs, std::int64_t set,
                                 Arithmetic arithmetic);

}  // namespace indexpool::reference
