// What a warp's access to neighbouring bytes costs, in closed form.
#pragma once

#include <algorithm>
#include <cstdint>

#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

inline constexpr std::int64_t sector_bytes = 32;

// 32-byte sectors that `bytes` from `address` on touch.
constexpr std::int64_t sectors_of(std::int64_t address, std::int64_t bytes) {
  if (bytes == 0) return 0;
  return (address % sector_bytes + bytes + sector_bytes - 1) / sector_bytes;
}
inline std::int64_t address_of(const void* pointer) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

// Bytes and sectors of global loads or stores.
struct GlobalAccess {
  std::int64_t bytes = 0, sectors = 0;

  GlobalAccess& operator+=(const GlobalAccess& other) {
    bytes += other.bytes;
    sectors += other.sectors;
    return *this;
  }
  friend GlobalAccess operator*(std::int64_t count, const GlobalAccess& access) {
    return {count * access.bytes, count * access.sectors};
  }
};

// `bytes` from `address` on, by instructions that each take the next `instruction_bytes` of them.
constexpr GlobalAccess contiguous_access(std::int64_t address, std::int64_t bytes,
                                         std::int64_t instruction_bytes) {
  GlobalAccess access{bytes, 0};
  if (bytes <= 0) return {};
  // Full instructions differ only when their length is no multiple of a sector, which no caller
  // has.
  const std::int64_t full = bytes / instruction_bytes;
  access.sectors = full * sectors_of(address, instruction_bytes) +
                   sectors_of(address, bytes % instruction_bytes);
  return access;
}

inline void add_loads(Traffic& traffic, const GlobalAccess& access) {
  traffic.global_load.value += access.bytes;
  traffic.load_sectors += access.sectors;
}
inline void add_stores(Traffic& traffic, const GlobalAccess& access) {
  traffic.global_store.value += access.bytes;
  traffic.store_sectors += access.sectors;
}
// `count` instructions that load (store) `bytes` distinct bytes in `wavefronts` passes each.
inline void add_shared_loads(Traffic& traffic, std::int64_t count, std::int64_t bytes,
                             std::int64_t wavefronts) {
  traffic.shared_load.value += count * bytes;
  traffic.shared_wavefronts += count * wavefronts;
}
inline void add_shared_stores(Traffic& traffic, std::int64_t count, std::int64_t bytes,
                              std::int64_t wavefronts) {
  traffic.shared_store.value += count * bytes;
  traffic.shared_wavefronts += count * wavefronts;
}

// Blocks that fit on an SM of `shared_memory` bytes, at most `promised` (launch bounds).
constexpr std::int64_t resident_blocks(std::int64_t promised, std::int64_t shared_bytes) {
  // sm_80 and sm_90 have at least 164 KB per SM, and each block takes 1 KB more than it asks for
  // (CUDA programming guide, technical specifications per compute capability).
  constexpr std::int64_t shared_memory = 164 << 10, reserved = 1024;
  return std::clamp<std::int64_t>(shared_memory / (shared_bytes + reserved), 1, promised);
}

}  // namespace indexpool::kernels
