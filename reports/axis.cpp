#include "indexpool/reports/axis.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

namespace indexpool::reports {

double LogAxis::at(double value) const {
  const double inside = std::clamp(std::isnan(value) ? high : value, low, high);
  return from + (to - from) * std::log(inside / low) / std::log(high / low);
}

std::vector<double> decades(const LogAxis& axis) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
  for (int power = first; power <= last; ++power) ticks.push_back(std::pow(10.0, power));
  return ticks;
}

std::vector<double> token_ticks(const LogAxis& axis) {
  std::vector<double> ticks;
  constexpr double first = 1024;
  const double above = axis.high * (1 + 1e-9), below = axis.low * (1 - 1e-9);
  for (int power = 0; std::ldexp(first, power) <= above; power += 2) {
    if (std::ldexp(first, power) >= below) ticks.push_back(std::ldexp(first, power));
  }
  return ticks;
}

LogAxis decade_axis(double low, double high, double from, double to) {
  const double first = std::floor(std::log10(low) + 1e-9);
  const double last = std::max(std::ceil(std::log10(high) - 1e-9), first + 1);
  return {std::pow(10.0, first), std::pow(10.0, last), from, to};
}

std::vector<double> spread(const std::vector<double>& wish, double gap, double low, double high) {
  std::vector<std::size_t> order(wish.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wish[a] < wish[b]; });
  std::vector<double> place(wish.size());
  double next = low;
  for (const std::size_t i : order) {
    place[i] = std::max(wish[i], next);
    next = place[i] + gap;
  }
  double limit = high;
  for (const std::size_t i : std::views::reverse(order)) {
    place[i] = std::min(place[i], limit);
    limit = place[i] - gap;
  }
  return place;
}

}  // namespace indexpool::reports
