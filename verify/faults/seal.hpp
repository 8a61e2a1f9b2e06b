// What is stored beside a page, and the layers that look at it.
//
// The kernels emit a PoolChecksum per pool (16 bytes of scratch). Once a pool is certain to stay (a
// rejected draft never is folded), `append` checks it against what was stored and folds it into the
// page's seal; the scratch is then free. A seal is 16 bytes whatever the page holds: 0.19 % of a
// page of 64 states of 132 bytes, where a pair per pool would be 6.1 %. A consumer that reads codes
// anyway checks the pair; storage and transfers check the CRC.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/verify/faults/integer_pair.hpp"
#include "indexpool/verify/faults/linear.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

struct alignas(16) PageSeal {
  std::uint32_t sum = 0, weighted_sum = 0;  // IntegerPair of the states folded so far
  std::uint32_t crc = 0;     // CRC32C of their bytes as they came: codes, scale, codes, scale, ...
  std::uint32_t states = 0;  // how many: bytes beyond them are not covered and never read
};
static_assert(sizeof(PageSeal) == 16);

// Layers, as bits of what raised an alarm.
enum Layer : unsigned {
  layer_source = 1,  // CRC32C of the rows a kernel reads, taken where they were made
  layer_linear = 2,  // L0: f32 pair before rounding, against what was stored
  layer_form = 4,    // what every page obeys, nothing stored
  layer_pair = 8,    // L1: exact pair on codes or elements, and scales
  layer_crc = 16,    // L2: CRC32C of the page
};
using Alarms = unsigned;

// The checks of one pool that was just stored: linear, form, pair.
Alarms check_pool(const PageShape& shape, const LinearLink& link, Bytes codes, Bytes scale,
                  const kernels::PoolChecksum& checksum);

// The next state of a page: the pair from the kernel's checksum, the CRC from the page's bytes.
// What happened between the kernel's store and here is in the CRC and not in the pair.
void append(PageSeal& seal, const PageShape& shape, Bytes page,
            const kernels::PoolChecksum& checksum);

// A consumer's checks of a page: form, pair, crc. A seal that claims more states than a page has
// fails both sums.
Alarms check_page(const PageShape& shape, Bytes page, const PageSeal& seal);

}  // namespace indexpool::verify::faults
