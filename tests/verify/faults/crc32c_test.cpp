#include "indexpool/verify/faults/crc32c.hpp"

#include <numeric>
#include <string_view>
#include <vector>

#include <boost/crc.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify::faults {
namespace {

std::vector<std::byte> bytes_of(const std::vector<std::uint8_t>& values) {
  std::vector<std::byte> bytes;
  for (const std::uint8_t value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRCs.
TEST(Crc32c, KnownVectors) {
  std::vector<std::uint8_t> rising(32), falling(32);
  std::iota(rising.begin(), rising.end(), std::uint8_t{0});
  std::iota(falling.rbegin(), falling.rend(), std::uint8_t{0});
  std::vector<std::uint8_t> iscsi_read(48, 0);
  iscsi_read[0] = 0x01, iscsi_read[1] = 0xc0, iscsi_read[16] = 0x14, iscsi_read[22] = 0x04;
  iscsi_read[27] = 0x14, iscsi_read[31] = 0x18, iscsi_read[32] = 0x28, iscsi_read[40] = 0x02;
  const std::string_view digits = "123456789";
  const struct {
    std::vector<std::uint8_t> bytes;
    std::uint32_t crc;
  } vectors[] = {{{}, 0},
                 {{digits.begin(), digits.end()}, 0xe3069283},
                 {std::vector<std::uint8_t>(32, 0), 0x8a9136aa},
                 {std::vector<std::uint8_t>(32, 0xff), 0x62a8ab43},
                 {rising, 0x46dd794e},
                 {falling, 0x113fdb5c},
                 {iscsi_read, 0xd9963a56}};
  for (const auto& vector : vectors) {
    EXPECT_EQ(crc32c(bytes_of(vector.bytes)), vector.crc);
    EXPECT_EQ(crc32c_by_table(bytes_of(vector.bytes)), vector.crc);
  }
}

RC_GTEST_PROP(Crc32c, InstructionTableAndBoostAgree, (const std::vector<std::uint8_t>& values)) {
  const auto bytes = bytes_of(values);
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> boost;
  boost.process_bytes(values.data(), values.size());
  RC_ASSERT(crc32c(bytes) == boost.checksum());
  RC_ASSERT(crc32c_by_table(bytes) == boost.checksum());
}

RC_GTEST_PROP(Crc32c, GoesOnWhereItStopped,
              (const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b)) {
  std::vector<std::uint8_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  RC_ASSERT(crc32c(bytes_of(b), crc32c(bytes_of(a))) == crc32c(bytes_of(both)));
  RC_ASSERT(crc32c_by_table(bytes_of(b), crc32c_by_table(bytes_of(a))) ==
            crc32c_by_table(bytes_of(both)));
}

}  // namespace
}  // namespace indexpool::verify::faults
