// Pool weights of the published forms, and how far their sum may be from 1.
#include <algorithm>
#include <cmath>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/policy.hpp"
#include "indexpool/reference/policy/operands.hpp"
#include "indexpool/reference/policy/set_weights.hpp"
#include "indexpool/reference/policy/store.hpp"
#include "indexpool/reference/softmax_pool.hpp"

namespace indexpool::reference {
namespace {

inline constexpr Format f32_format{24, -126, 0x1.fffffep127, false};

// Neither a quotient of exponentials nor a sigmoid is negative.
bool never_negative(WeightRule rule) {
  return rule == WeightRule::role_softmax || rule == WeightRule::gated ||
         rule == WeightRule::channel_softmax;
}

template <class T>
Bounded weights_in(const PoolingInputs& inputs) {
  Bounded result(pool_weight_shape(inputs));
  const bool clipped = never_negative(find_policy(inputs.policy).rule);
  std::size_t at = 0;
  for (std::int64_t set = 0; set < weight_sets(inputs); ++set) {
    for (const Ball<T>& w : set_weights<T>(inputs, set, in_binary32)) {
      store(result, at, rounded_once(w, f32_format));
      if (clipped && !w.open()) result.low[at] = std::max(result.low[at], 0.0);
      ++at;
    }
  }
  return result;
}

}  // namespace

Shape pool_weight_shape(const PoolingInputs& inputs) {
  if (inputs.per_channel()) return {inputs.group_count(), inputs.index_kpool, inputs.head_dim};
  return {weight_sets(inputs), inputs.index_kpool};
}

Bounded pool_weights(const PoolingInputs& inputs, Precision precision) {
  if (find_policy(inputs.policy).rule == WeightRule::maximum) {
    throw ConfigError("policy block_max has no pool weights: it takes the largest score");
  }
  check_operands(inputs);
  return precision == Precision::binary64 ? weights_in<double>(inputs) : weights_in<Quad>(inputs);
}

}  // namespace indexpool::reference
