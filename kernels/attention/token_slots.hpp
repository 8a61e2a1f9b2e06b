// Slots of pooled vectors by the token they belong to, for the feedback of attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace indexpool::kernels {

// Those of the k-th token are slots[first[k]] up to, not including, slots[first[k + 1]], ascending.
struct TokenSlots {
  std::vector<std::int32_t> slots, first;
  std::int64_t tokens() const { return static_cast<std::int64_t>(first.size()) - 1; }
};
// `tokens` [slots]: the token of each slot, any numbers; the tokens ascend. ConfigError from 2^31
// slots on.
TokenSlots token_slots(std::span<const std::int32_t> tokens);

}  // namespace indexpool::kernels
