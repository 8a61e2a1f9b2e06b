// Strong unit types: a quantity converts to another only where physics says so.
#pragma once

#include <compare>
#include <cstdint>

namespace indexpool {

// A quantity of one unit. Same units add; a quantity scales by a plain number.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, Rep n) { return Quantity(a.value * n); }
  friend constexpr Quantity operator*(Rep n, Quantity a) { return Quantity(a.value * n); }
};

// Memory is exact, so bytes are whole numbers; rates and times are not.
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flop = Quantity<struct FlopTag, double>;
using Seconds = Quantity<struct SecondsTag, double>;
using Hertz = Quantity<struct HertzTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag, double>;

constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) {
  return Seconds(static_cast<double>(amount.value) / rate.value);
}
constexpr Seconds operator/(Flop amount, FlopPerSecond rate) {
  return Seconds(amount.value / rate.value);
}
constexpr BytesPerSecond operator/(Bytes amount, Seconds time) {
  return BytesPerSecond(static_cast<double>(amount.value) / time.value);
}
constexpr double operator/(Seconds a, Seconds b) { return a.value / b.value; }

// Products and sums of sizes, refused when they leave 63 bits.
// Throws ConfigError naming `what`.
std::int64_t checked_product(std::int64_t a, std::int64_t b, const char* what);
std::int64_t checked_sum(std::int64_t a, std::int64_t b, const char* what);

}  // namespace indexpool
