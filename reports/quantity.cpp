#include "indexpool/reports/quantity.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace indexpool::reports {
namespace {

// Three significant digits without an exponent or trailing zeros.
std::string three_digits(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

struct Unit {
  double scale;
  std::string_view name;
};
constexpr std::array byte_units = {Unit{1, "B"},    Unit{1e3, "kB"},  Unit{1e6, "MB"},
                                   Unit{1e9, "GB"}, Unit{1e12, "TB"}, Unit{1e15, "PB"}};
constexpr std::array second_units = {Unit{1e-9, "ns"}, Unit{1e-6, "µs"}, Unit{1e-3, "ms"},
                                     Unit{1, "s"}};

// The largest unit in which `value` shows at least one whole; 999.6 already is 1 of the next.
template <std::size_t N>
const Unit& unit_for(double value, const std::array<Unit, N>& units) {
  std::size_t i = 0;
  while (i + 1 < N && std::abs(value) >= units[i + 1].scale * 0.9995) ++i;
  return units[i];
}

}  // namespace

std::string format_bytes(double bytes) {
  const Unit& unit = unit_for(bytes, byte_units);
  return fmt::format("{} {}", three_digits(bytes / unit.scale), unit.name);
}

std::string format_seconds(double seconds) {
  const Unit& unit = unit_for(seconds, second_units);
  return fmt::format("{} {}", three_digits(seconds / unit.scale), unit.name);
}

std::string format_interval(Seconds low, Seconds high) {
  const Unit& unit = unit_for(high.value, second_units);
  return fmt::format("{}–{} {}", three_digits(low.value / unit.scale),
                     three_digits(high.value / unit.scale), unit.name);
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ' ');  // a thin space would not align in a terminal
  }
  return digits;
}

std::string format_tokens(std::int64_t tokens) {
  constexpr std::int64_t mega = 1 << 20, kilo = 1 << 10;
  if (tokens >= mega && tokens % mega == 0) return fmt::format("{}M", tokens / mega);
  if (tokens >= kilo && tokens % kilo == 0) return fmt::format("{}K", tokens / kilo);
  return format_count(tokens);
}

std::string format_percent(double share) { return three_digits(share * 100) + " %"; }

std::string format_utilisation(double utilisation) {
  if (utilisation == 0) return "exact";
  if (std::isfinite(utilisation) && std::abs(utilisation) < 1e-3) {
    return fmt::format("{:.1e}", utilisation);
  }
  if (std::abs(utilisation) >= 1e5) return fmt::format("{:.1e}", utilisation);
  return three_digits(utilisation);
}

}  // namespace indexpool::reports
