// Numbers for people: three significant digits and a unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "indexpool/model/units.hpp"

namespace indexpool::reports {

std::string format_bytes(double bytes);      // "34.6 MB": powers of 1000, whole below 1 kB
std::string format_seconds(double seconds);  // "19.8 µs"
std::string format_interval(Seconds low, Seconds high);  // "17.1–24 µs": one unit for both ends
std::string format_count(std::int64_t count);            // "262 144"
std::string format_tokens(std::int64_t tokens);  // "4K", "1M": powers of 1024; else as count
std::string format_percent(double share);        // "12.5 %"
// Error over bound. "exact" for 0, "1.2e-05" below a thousandth, "inf" and "nan" as they are.
std::string format_utilisation(double utilisation);

}  // namespace indexpool::reports
