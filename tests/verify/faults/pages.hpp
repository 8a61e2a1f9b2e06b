// Small pages for tests: random codes with sums as a kernel would emit them.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "indexpool/model/dtype.hpp"
#include "indexpool/verify/faults/seal.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify::faults {

struct SmallPage {
  PageShape shape;
  std::vector<std::byte> bytes;
  std::vector<kernels::PoolChecksum> checksums;
  PageSeal seal;

  std::size_t code_at(std::int64_t state, std::int64_t channel) const {
    return static_cast<std::size_t>(state * shape.code_bytes() +
                                    channel * info(shape.mode.cache).bytes);
  }
  std::size_t scale_at(std::int64_t state) const {
    return static_cast<std::size_t>(shape.scales_at() + 4 * state);
  }
  IntegerPair pair_of_state(std::int64_t state) const {
    return pair_of_pool(shape, codes_of(shape, bytes, state), scale_of(shape, bytes, state));
  }
  // Of the first `states` states.
  IntegerPair pair_of_page(std::int64_t states) const {
    IntegerPair pair;
    for (std::int64_t state = 0; state < states; ++state) {
      fold(pair, pair_of_state(state), shape, state);
    }
    return pair;
  }
};

// A row without NaN or zero: codes of every kind, the largest in channel 0 so that the form holds,
// or numbers of 19 binades.
inline void draw_row(const PageShape& shape, const Random& random, std::int64_t state,
                     std::byte* row) {
  for (std::int64_t c = 0; c < shape.head_dim; ++c) {
    const std::int64_t i = state * shape.head_dim + c;
    const bool negative = random.coin(-i - 1);
    if (shape.quantised()) {
      const std::int64_t code = c == 0 ? 0x7e : random.integer(i, 1, 0x7e);
      row[c] = static_cast<std::byte>(code | (negative ? 0x80 : 0));
    } else {
      const auto binade = static_cast<int>(random.integer(i + 1'000'000, -9, 9));
      const double size = std::ldexp(1 + random.uniform(i), binade);
      store_element(shape.mode.cache, row, c, negative ? -size : size);
    }
  }
}

// Scales of 2^-8 ... 2^8; the first `states` are in use.
inline SmallPage small_page(PageShape shape, std::int64_t states, std::uint64_t seed) {
  SmallPage page{shape, std::vector<std::byte>(static_cast<std::size_t>(shape.bytes())), {}, {}};
  const Random random(seed, 1);
  for (std::int64_t state = 0; state < shape.states; ++state) {
    draw_row(shape, random, state, page.bytes.data() + page.code_at(state, 0));
    if (!shape.quantised()) continue;
    const auto scale = std::ldexp(1.0f, static_cast<int>(random.integer(-state - 9000, -8, 8)));
    std::memcpy(page.bytes.data() + page.scale_at(state), &scale, 4);
  }
  for (std::int64_t state = 0; state < states; ++state) {
    const IntegerPair pair = page.pair_of_state(state);
    page.checksums.push_back({0, 0, pair.sum, pair.weighted_sum});
    append(page.seal, shape, page.bytes, page.checksums.back());
  }
  return page;
}

inline PageShape e4m3_shape(std::int64_t channels, std::int64_t states) {
  return {numeric_mode("vllm_fp8"), channels, states};
}

}  // namespace indexpool::verify::faults
