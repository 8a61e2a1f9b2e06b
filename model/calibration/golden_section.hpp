// The least of a function of one positive number. Internal to the layer.
#pragma once

#include <cmath>

namespace indexpool::calibration {

// Where cost(x) is least between low and high, of one that falls and then rises; by golden section
// of the logarithm, to a relative width of 1e-9 of the range's.
template <class Cost>
double golden_section(double low, double high, Cost cost) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = std::log(low), b = std::log(high);
  double c = b - golden * (b - a), d = a + golden * (b - a);
  double at_c = cost(std::exp(c)), at_d = cost(std::exp(d));
  for (int i = 0; i < 44; ++i) {
    if (at_c < at_d) {
      b = d, d = c, at_d = at_c;
      c = b - golden * (b - a);
      at_c = cost(std::exp(c));
    } else {
      a = c, c = d, at_c = at_d;
      d = a + golden * (b - a);
      at_d = cost(std::exp(d));
    }
  }
  return std::exp((a + b) / 2);
}

}  // namespace indexpool::calibration
