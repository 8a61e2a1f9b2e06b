// CRC32C (Castagnoli), the checksum of iSCSI, ext4 and SCTP: RFC 3720, appendix B.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace indexpool::verify::faults {

// Of `bytes`; with `crc` the value of what came before, of both together:
// crc32c(b, crc32c(a)) == crc32c(a and b back to back). The processor's instruction where it has
// one, else a table.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// Each way by itself, so that they can be compared. Without the instruction both are the table.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc = 0);
bool has_crc32c_instruction();

}  // namespace indexpool::verify::faults
