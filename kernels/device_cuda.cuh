// Device branch of device.cuh: threads, memory, synchronisation and launches on a GPU. The same
// functions as sim/simt/device.hpp, without the source locations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <cuda_runtime.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

#define IP_KERNEL(max_threads, min_blocks_per_sm) \
  __global__ __launch_bounds__(max_threads, min_blocks_per_sm)
#define IP_DEVICE __device__ __forceinline__
#define IP_UNROLL _Pragma("unroll")  // arrays that must stay in registers

namespace indexpool::kernels::ip {

inline constexpr std::uint32_t full_mask = 0xffffffffu;

// 16 bytes moved by one instruction.
struct alignas(16) Vec16 {
  std::uint32_t x, y, z, w;
};

// --- who am I (1-D grids and blocks) ---
IP_DEVICE std::int64_t block_index() { return blockIdx.x; }
IP_DEVICE std::int64_t grid_blocks() { return gridDim.x; }
IP_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
IP_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
IP_DEVICE int lane_index() { return thread_index() & 31; }
IP_DEVICE int warp_index() { return thread_index() >> 5; }

// --- memory: 1, 2, 4, 8 or 16 bytes, naturally aligned, one instruction each. Plain (coherent)
// loads: append reads back entries that the same thread has stored. ---
namespace detail {
template <int Bytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class T>
IP_DEVICE T load(const T* from) {
  using W = typename Word<sizeof(T)>::type;
  const W word = *reinterpret_cast<const W*>(from);
  T value;
  __builtin_memcpy(&value, &word, sizeof(T));
  return value;
}
template <class T>
IP_DEVICE void store(T* to, const T& value) {
  using W = typename Word<sizeof(T)>::type;
  W word;
  __builtin_memcpy(&word, &value, sizeof(T));
  *reinterpret_cast<W*>(to) = word;
}
IP_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
}  // namespace detail

template <class T>
IP_DEVICE T load_global(const T* from) {
  __builtin_assume(__isGlobal(from));
  return detail::load(from);
}
template <class T>
IP_DEVICE void store_global(T* to, const T& value) {
  __builtin_assume(__isGlobal(to));
  detail::store(to, value);
}

IP_DEVICE std::byte* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  return reinterpret_cast<std::byte*>(shared_memory);
}
template <class T>
IP_DEVICE T load_shared(const T* from) {
  __builtin_assume(__isShared(from));
  return detail::load(from);
}
template <class T>
IP_DEVICE void store_shared(T* to, const T& value) {
  __builtin_assume(__isShared(to));
  detail::store(to, value);
}
IP_DEVICE std::int32_t atomic_add_shared(std::int32_t* to, std::int32_t value) {
  return atomicAdd(to, value);
}

// --- asynchronous copies (PTX ISA, cp.async; .cg keeps streamed data out of L1) ---
IP_DEVICE void async_copy_16(void* shared_to, const void* global_from, bool active = true) {
  const std::uint32_t to = detail::shared_address(shared_to);
  const int bytes = active ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global_from),
               "r"(bytes)
               : "memory");
}
IP_DEVICE void async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int Pending>
IP_DEVICE void async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

// --- synchronisation ---
IP_DEVICE void sync_block() { __syncthreads(); }
IP_DEVICE void sync_warp(std::uint32_t mask = full_mask) { __syncwarp(mask); }
template <class T>
IP_DEVICE T shuffle(std::uint32_t mask, T value, int source_lane) {
  return __shfl_sync(mask, value, source_lane);
}
template <class T>
IP_DEVICE T shuffle_xor(std::uint32_t mask, T value, int lane_mask) {
  return __shfl_xor_sync(mask, value, lane_mask);
}
template <class T>
IP_DEVICE T shuffle_up(std::uint32_t mask, T value, int delta) {
  return __shfl_up_sync(mask, value, delta);
}
IP_DEVICE std::uint32_t ballot(std::uint32_t mask, bool predicate) {
  return __ballot_sync(mask, predicate);
}

}  // namespace indexpool::kernels::ip

#include "indexpool/kernels/device_cuda_matrix.cuh"
#include "indexpool/kernels/device_cuda_numbers.cuh"

namespace indexpool::kernels {

inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw EnvironmentError(std::string(what) + " failed: " + cudaGetErrorString(status) + " (" +
                         cudaGetErrorName(status) + ")");
}

// Major times ten plus minor, of the current device.
inline int ip_compute_capability(LaunchContext&) {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute(compute capability)");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute(compute capability)");
  return 10 * major + minor;
}

// 48 KB is what a block gets without asking (CUDA programming guide, technical specifications).
template <class Args>
void ip_launch(LaunchContext& context, std::int64_t blocks, int threads, std::int64_t shared_bytes,
               void (*kernel)(Args), const Args& args) {
  if (blocks == 0) return;
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    throw EnvironmentError("a launch of " + std::to_string(blocks) +
                           " blocks; a 1-D grid holds at most 2147483647: split the batch");
  if (shared_bytes > 48 * 1024)
    check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)),
               "cudaFuncSetAttribute(dynamic shared memory)");
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
           static_cast<std::size_t>(shared_bytes), static_cast<cudaStream_t>(context.stream)>>>(
      args);
  check_cuda(cudaGetLastError(), "kernel launch");
}

}  // namespace indexpool::kernels
