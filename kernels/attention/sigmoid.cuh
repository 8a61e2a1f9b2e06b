// sigmoid in f32 from the kernels' own exp.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// 1 / (1 + exp(-x)): 1 from 17.4 on, 0 from -88.8 down, where the exponential is infinite.
IP_DEVICE float sigmoid_f32(float x) { return ip::div(1.0f, ip::add(1.0f, exp_f32(-x))); }

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
