// What the pooling kernels declare to move: equal, byte for byte, to what the executor counts.
#pragma once

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

Work declared_pool(const PoolArgs& args);
Work declared_seed_tail(const SeedTailArgs& args);
Work declared_append(const AppendArgs& args);
Work declared_quantize_query(const QuantizeQueryArgs& args);

}  // namespace indexpool::kernels
