// Inside of Memory: the buffers by address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
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

// A number for a call site. File names of one program lie close together, so their low bits and the
// line tell sites apart; two accesses on one line are told apart by their order.
inline std::uint64_t site_number(const SourceLine& where) {
  return reinterpret_cast<std::uintptr_t>(where.file) << 16 ^
         static_cast<std::uint64_t>(where.line);
}

struct Memory::Impl {
  std::map<std::uintptr_t, Buffer> buffers;  // by begin
  std::string damage_of_released;

  // True when [address, address + bytes) lies inside one live buffer. A call site mostly stays in
  // one buffer, so each remembers its last.
  bool contains(std::uintptr_t address, int bytes, const SourceLine& where) {
    const Range& last = last_hit[site_number(where) % last_hit.size()];
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
  bool find(std::uintptr_t address, int bytes, const SourceLine& where);
};

}  // namespace indexpool::sim::simt
