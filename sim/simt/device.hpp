// What a kernel may do, on the CPU: the host branch of kernels/device.cuh. Every operation that
// touches memory or other threads carries the caller's source location, so that errors name the
// kernel's line.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "indexpool/sim/simt/session.hpp"

namespace indexpool::sim::simt {

using Where = SourceLine;
inline constexpr std::uint32_t full_mask = 0xffffffffu;

// 16 bytes moved by one instruction.
struct alignas(16) Vec16 {
  std::uint32_t x, y, z, w;
};

// The thread whose turn it is. Written by the executor only.
struct Position {
  int thread = 0;
  int block_threads = 0;
  std::int64_t block = 0;
  std::int64_t grid_blocks = 0;
  std::byte* shared = nullptr;
};
extern constinit thread_local Position position;

// --- who am I (1-D grids and blocks) ---
inline std::int64_t block_index() { return position.block; }
inline std::int64_t grid_blocks() { return position.grid_blocks; }
inline int thread_index() { return position.thread; }
inline int block_threads() { return position.block_threads; }
inline int lane_index() { return thread_index() & 31; }
inline int warp_index() { return thread_index() >> 5; }

// --- global memory: `bytes` in {1, 2, 4, 8, 16}, naturally aligned; checked against the buffers
// ---
void load_global_bytes(void* to, const void* from, int bytes, Where where);
void store_global_bytes(void* to, const void* from, int bytes, Where where);
template <class T>
T load_global(const T* from, Where where = Where::current());
template <class T>
void store_global(T* to, const T& value, Where where = Where::current());

// --- shared memory: one dynamic allocation per block ---
inline std::byte* dynamic_shared() { return position.shared; }
template <class T>
T load_shared(const T* from, Where where = Where::current());
template <class T>
void store_shared(T* to, const T& value, Where where = Where::current());
// Returns the old value. Order among lanes is the executor's; only commutative uses are portable.
std::int32_t atomic_add_shared(std::int32_t* to, std::int32_t value,
                               Where where = Where::current());

// --- asynchronous copies, 16 bytes: the destination is poison until the matching wait; visible to
// other threads after a barrier. With `active` false writes zeros instead (cp.async src-size 0).
// ---
void async_copy_16(void* shared_to, const void* global_from, bool active = true,
                   Where where = Where::current());
void async_commit(Where where = Where::current());
void async_wait_pending(int pending, Where where);
template <int Pending>
void async_wait(Where where = Where::current()) {
  async_wait_pending(Pending, where);
}

// --- synchronisation. Lanes of a mask must call the same operation from the same line. Only the
// two syncs order memory between threads, as in CUDA; shuffles, votes and matrix operations do not.
// A shuffled type has at most 8 bytes, and more than 4 count as two shuffles. ---
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
void load_matrix_x4(std::uint32_t (&out)[4], const void* shared_row,
                    Where where = Where::current());
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where = Where::current());  // d += a b
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Where where = Where::current());
void mma_m16n8k32_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     Where where = Where::current());
void mma_m16n8k32_e4m3(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where = Where::current());

// --- arithmetic with one explicit rounding each ---
inline float add(float a, float b) { return a + b; }
inline float sub(float a, float b) { return a - b; }
inline float mul(float a, float b) { return a * b; }
inline float div(float a, float b) { return a / b; }
inline float sqrt(float a) { return std::sqrt(a); }
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline int count_bits(std::uint32_t value) { return std::popcount(value); }
// IEEE maxNum: a number beats NaN, and +0 beats -0 (fmaxf).
inline float max_number(float a, float b) {
  if (a == b) return float_of(bits_of(a) & bits_of(b));
  if (a > b || b != b) return a == a ? a : float_of(0x7fffffffu);
  return b;
}

// --- conversions, two 16-bit elements or four bytes at a time where the device has it so ---
float float_from_bf16(std::uint16_t bits);
float float_from_f16(std::uint16_t bits);
std::uint16_t bf16_from_float(float value);
std::uint16_t f16_from_float(float value);
std::uint8_t e4m3_from_float(float value);  // saturating
float float_from_e4m3(std::uint8_t code);
std::int8_t i8_from_float(float value);  // nearest even, [-127, 127]

// --- inside: what the templates above stand on ---
// Checks and counts an access; the access itself is left to the caller, so that a race detector
// reports it at the kernel's line.
void enter_global(const void* address, int bytes, bool store, Where where);
void enter_shared(const void* address, int bytes, bool store, Where where);
std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, int bytes, int source,
                           Where where);

template <class T>
inline constexpr bool is_word = std::is_trivially_copyable_v<T> &&
                                (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 ||
                                 sizeof(T) == 8 || sizeof(T) == 16);

template <class T>
T load_global(const T* from, Where where) {
  static_assert(is_word<T>);
  enter_global(from, sizeof(T), false, where);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_global(T* to, const T& value, Where where) {
  static_assert(is_word<T>);
  enter_global(to, sizeof(T), true, where);
  std::memcpy(to, &value, sizeof(T));
}
template <class T>
T load_shared(const T* from, Where where) {
  static_assert(is_word<T>);
  enter_shared(from, sizeof(T), false, where);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_shared(T* to, const T& value, Where where) {
  static_assert(is_word<T>);
  enter_shared(to, sizeof(T), true, where);
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
T shuffle(std::uint32_t mask, T value, int source_lane, Where where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = shuffle_bits(mask, bits, sizeof(T), source_lane & 31, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
T shuffle_xor(std::uint32_t mask, T value, int lane_mask, Where where) {
  return shuffle(mask, value, lane_index() ^ lane_mask, where);
}
// Lanes below `delta` keep their value.
template <class T>
T shuffle_up(std::uint32_t mask, T value, int delta, Where where) {
  const int source = lane_index() - delta;
  return shuffle(mask, value, source < 0 ? lane_index() : source, where);
}

}  // namespace indexpool::sim::simt
