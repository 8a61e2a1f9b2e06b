// Balls as the enclosures that leave the layer. Internal to the layer.
#pragma once

#include <algorithm>

#include "indexpool/reference/bounded.hpp"
#include "indexpool/reference/policy/ball.hpp"

namespace indexpool::reference {

template <class T>
void store(Bounded& target, std::size_t at, const Enclosed<T>& x) {
  target.value[at] = to_double(x.value);
  target.low[at] = std::min(double_below(x.low), target.value[at]);
  target.high[at] = std::max(double_above(x.high), target.value[at]);
}

template <class T>
void store(Bounded& target, std::size_t at, const Ball<T>& x) {
  store(target, at, Enclosed<T>{x.value, x.low(), x.high()});
}

// What one rounding makes of it. Rounding is monotone, so the ends enclose numbers that are already
// of the format too.
template <class T>
Enclosed<T> rounded_once(const Ball<T>& x, const Format& format) {
  if (x.open()) return open_around(x.value);
  return round_to_format(Enclosed<T>{x.value, x.low(), x.high()}, format);
}

}  // namespace indexpool::reference
