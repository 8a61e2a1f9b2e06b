#include "indexpool/verify/faults/crc32c.hpp"

#include <array>
#include <cstring>

namespace indexpool::verify::faults {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // 0x1edc6f41, bits reversed

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> table = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes,
                                                               std::uint32_t crc) {
  std::uint64_t rest = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    rest = __builtin_ia32_crc32di(rest, word);
  }
  auto narrow = static_cast<std::uint32_t>(rest);
  for (; left > 0; --left, ++at) {
    narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*at));
  }
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc) {
  std::uint32_t rest = ~crc;
  for (const std::byte byte : bytes) {
    rest = (rest >> 8) ^ table[(rest ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~rest;
}

bool has_crc32c_instruction() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
#else
  return false;
#endif
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  if (has_crc32c_instruction()) return by_instruction(bytes, crc);
#endif
  return crc32c_by_table(bytes, crc);
}

}  // namespace indexpool::verify::faults
