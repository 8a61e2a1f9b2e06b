// The one door between kernel source and what executes it: on a GPU intrinsics and PTX, on a CPU
// the executor (sim/simt/device.hpp). Kernel bodies use `ip::` and nothing else of the platform.
#pragma once

#ifdef __CUDACC__
#include "indexpool/kernels/device_cuda.cuh"
#define INDEXPOOL_TARGET cuda
#else
#include "indexpool/kernels/device_simt.hpp"
#ifndef INDEXPOOL_TARGET
#define INDEXPOOL_TARGET simt
#endif
#endif
