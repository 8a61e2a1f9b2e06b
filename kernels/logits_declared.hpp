// What the logits kernels declare to move: equal, byte for byte, to what the executor counts.
#pragma once

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/logits_geometry.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

// host_tiles and host_rows say which rows see how many pools. Without them every tile has its share
// of the rows and all of them see max_pools.
Work declared_mma_logits(const LogitsArgs& args, Multiply multiply);
Work declared_fma_logits(const LogitsArgs& args);

}  // namespace indexpool::kernels
