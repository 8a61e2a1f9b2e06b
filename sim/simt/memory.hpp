// Inside of Memory: the buffers by address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <source_location>
#include <string>

#include "indexpool/sim/simt/session.hpp"

namespace indexpool::sim::simt {

struct Buffer {
  std::string name;
  std::uintptr_t begin = 0;  // of the user's bytes
  std::int64_t bytes = 0;
  std::byte* mapping = nullptr;
  std::size_t mapping_bytes = 0;
};

// The address of the compiler's record of a call site: as good as file, line and column, and cheap.
inline std::uintptr_t site_address(const std::source_location& where) {
  static_assert(sizeof(where) == sizeof(std::uintptr_t));
  return __builtin_bit_cast(std::uintptr_t, where);
}

struct Memory::Impl {
  std::map<std::uintptr_t, Buffer> buffers;  // by begin
  std::string damage_of_released;

  // True when [address, address + bytes) lies inside one live buffer. A call site mostly stays in
  // one buffer, so each remembers its last.
  bool contains(std::uintptr_t address, int bytes, const std::source_location& where) {
    const Range& last = last_hit[(site_address(where) >> 3) % last_hit.size()];
    if (address - last.begin < last.bytes && address - last.begin + bytes <= last.bytes)
      return true;
    return find(address, bytes, where);
  }
  // "8 bytes past the end of buffer 'keys' (1024 bytes)".
  std::string place_of(std::uintptr_t address) const;

  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t bytes = 0;
  };
  std::array<Range, 64> last_hit{};

 private:
  bool find(std::uintptr_t address, int bytes, const std::source_location& where);
};

}  // namespace indexpool::sim::simt
