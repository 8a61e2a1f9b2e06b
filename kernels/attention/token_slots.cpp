#include "indexpool/kernels/attention/token_slots.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::kernels {

TokenSlots token_slots(std::span<const std::int32_t> tokens) {
  if (tokens.size() > std::numeric_limits<std::int32_t>::max())
    throw ConfigError(
        fmt::format("{} slots; the lists of a token's slots hold below 2^31", tokens.size()));
  TokenSlots result;
  result.slots.resize(tokens.size());
  std::iota(result.slots.begin(), result.slots.end(), 0);
  const auto token = [&](std::int32_t slot) { return tokens[static_cast<std::size_t>(slot)]; };
  std::stable_sort(result.slots.begin(), result.slots.end(),
                   [&](std::int32_t a, std::int32_t b) { return token(a) < token(b); });
  for (std::size_t i = 0; i < result.slots.size(); ++i) {
    if (i == 0 || token(result.slots[i]) != token(result.slots[i - 1]))
      result.first.push_back(static_cast<std::int32_t>(i));
  }
  result.first.push_back(static_cast<std::int32_t>(result.slots.size()));
  return result;
}

}  // namespace indexpool::kernels
