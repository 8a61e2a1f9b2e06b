// What a kernel may do, on the CPU: the host branch of kernels/device.cuh. Every operation that
// touches memory or other threads carries the caller's source location, so that errors name the
// kernel's line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "indexpool/sim/simt/session.hpp"

namespace indexpool::sim::simt {

using Where = std::source_location;
inline constexpr std::uint32_t full_mask = 0xffffffffu;

// 16 bytes moved by one instruction.
struct alignas(16) Vec16 {
  std::uint32_t x, y, z, w;
};

// --- who am I (1-D grids and blocks) ---
std::int64_t block_index();
std::int64_t grid_blocks();
int thread_index();
int block_threads();
inline int lane_index() { return thread_index() & 31; }
inline int warp_index() { return thread_index() >> 5; }

// --- global memory: `bytes` in {1, 2, 4, 8, 16}, naturally aligned; checked against the buffers ---
void load_global_bytes(void* to, const void* from, int bytes, Where where);
void store_global_bytes(void* to, const void* from, int bytes, Where where);
template <class T>
T load_global(const T* from, Where where = Where::current());
template <class T>
void store_global(T* to, const T& value, Where where = Where::current());

// --- shared memory: one dynamic allocation per block ---
std::byte* dynamic_shared();
template <class T>
T load_shared(const T* from, Where where = Where::current());
template <class T>
void store_shared(T* to, const T& value, Where where = Where::current());
// Returns the old value. Order among lanes is the executor's; only commutative uses are portable.
std::int32_t atomic_add_shared(std::int32_t* to, std::int32_t value, Where where = Where::current());

// --- asynchronous copies, 16 bytes: the destination is poison until the matching wait; visible to
// other threads after a barrier. With `active` false writes zeros instead (cp.async src-size 0). ---
void async_copy_16(void* shared_to, const void* global_from, bool active = true,
                   Where where = Where::current());
void async_commit(Where where = Where::current());
void async_wait_pending(int pending, Where where);
template <int Pending>
void async_wait(Where where = Where::current()) {
  async_wait_pending(Pending, where);
}

// --- synchronisation ---
void sync_block(Where where = Where::current());
void sync_warp(std::uint32_t mask = full_mask, Where where = Where::current());
template <class T>
T shuffle(std::uint32_t mask, T value, int source_lane, Where where = Where::current());
template <class T>
T shuffle_xor(std::uint32_t mask, T value, int lane_mask, Where where = Where::current());
template <class T>
T shuffle_up(std::uint32_t mask, T value, int delta, Where where = Where::current());
std::uint32_t ballot(std::uint32_t mask, bool predicate, Where where = Where::current());

// --- matrix operations of a full warp; fragments laid out as in the PTX ISA ---
// ldmatrix .x4: four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of
// matrix i / 8.
void load_matrix_x4(std::uint32_t (&out)[4], const void* shared_row, Where where = Where::current());
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where = Where::current());  // d += a b
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Where where = Where::current());
void mma_m16n8k32_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     Where where = Where::current());
void mma_m16n8k32_e4m3(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where = Where::current());

// --- arithmetic with one explicit rounding each ---
float add(float a, float b);
float sub(float a, float b);
float mul(float a, float b);
float div(float a, float b);
float fma(float a, float b, float c);
float max_number(float a, float b);  // IEEE maxNum: a number beats NaN (fmaxf)
std::uint32_t bits_of(float value);
float float_of(std::uint32_t bits);
int count_bits(std::uint32_t value);

// --- conversions, two 16-bit elements or four bytes at a time where the device has it so ---
float float_from_bf16(std::uint16_t bits);
float float_from_f16(std::uint16_t bits);
std::uint16_t bf16_from_float(float value);
std::uint16_t f16_from_float(float value);
std::uint8_t e4m3_from_float(float value);  // saturating
float float_from_e4m3(std::uint8_t code);
std::int8_t i8_from_float(float value);     // nearest even, [-127, 127]

}  // namespace indexpool::sim::simt
