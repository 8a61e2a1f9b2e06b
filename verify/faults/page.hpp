// A cache page as a consumer sees it: so many states, their codes, their scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "indexpool/model/config.hpp"

namespace indexpool::verify::faults {

// Planar: [states x head_dim codes][states x f32 scale], no scales when the mode does not quantise.
struct PageShape {
  NumericMode mode;
  std::int64_t head_dim = 128, states = 64;

  bool quantised() const { return mode.quantised(); }
  std::int64_t code_bytes() const { return head_dim * info(mode.cache).bytes; }  // of one state
  std::int64_t scale_bytes() const { return quantised() ? 4 : 0; }
  std::int64_t state_bytes() const { return code_bytes() + scale_bytes(); }
  std::int64_t scales_at() const { return states * code_bytes(); }
  std::int64_t bytes() const { return states * state_bytes(); }
};

using Bytes = std::span<const std::byte>;

inline Bytes codes_of(const PageShape& shape, Bytes page, std::int64_t state) {
  return page.subspan(static_cast<std::size_t>(state * shape.code_bytes()),
                      static_cast<std::size_t>(shape.code_bytes()));
}
// The four bytes of a state's scale; empty when the mode does not quantise.
inline Bytes scale_of(const PageShape& shape, Bytes page, std::int64_t state) {
  return page.subspan(static_cast<std::size_t>(shape.scales_at() + state * shape.scale_bytes()),
                      static_cast<std::size_t>(shape.scale_bytes()));
}

}  // namespace indexpool::verify::faults
