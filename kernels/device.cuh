// The one door between kernel source and what executes it: on a GPU intrinsics and PTX, on a CPU
// the executor (sim/simt/device.hpp). Kernel bodies use `ip::` and nothing else of the platform.
//
// Kernels live in namespace indexpool::kernels::INDEXPOOL_TARGET, whose last part names the target;
// a mutant build defines INDEXPOOL_TARGET as its own name.
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

#define INDEXPOOL_QUOTE(name) #name
#define INDEXPOOL_QUOTE_VALUE(name) INDEXPOOL_QUOTE(name)
#define INDEXPOOL_TARGET_NAME INDEXPOOL_QUOTE_VALUE(INDEXPOOL_TARGET)
