// Host branch of device.cuh.
#pragma once

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/sim/simt/device.hpp"

#define IP_KERNEL(max_threads, min_blocks_per_sm)
#define IP_DEVICE inline
#define IP_UNROLL

namespace indexpool::kernels {
namespace ip = ::indexpool::sim::simt;

// Major times ten plus minor. The executor has every instruction of device.hpp.
inline int ip_compute_capability(LaunchContext&) { return 90; }

template <class Args>
void ip_launch(LaunchContext& context, std::int64_t blocks, int threads, std::int64_t shared_bytes,
               void (*kernel)(Args), const Args& args) {
  ip::launch(*context.simt, blocks, threads, shared_bytes, [kernel, &args] { kernel(args); });
}

}  // namespace indexpool::kernels
