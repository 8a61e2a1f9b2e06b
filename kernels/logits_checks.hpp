// What the logits kernels refuse, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// Heads, cache, alignment and grid of a launch whose blocks take `tile_pools` pools each.
std::optional<std::string> bad_logits(const LogitsArgs& args, std::int64_t tile_pools);

}  // namespace indexpool::kernels
