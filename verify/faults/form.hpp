// What every page obeys whatever was pooled, without anything stored beside it.
#pragma once

#include <cstdint>

#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// Quantised: codes are numbers, the scale is positive and one that its rule gives (a power of two;
// not below the floor of amax), and above that floor the largest code fills its range: an amax of
// the rule gives a code of at least 224 of 448 (power of two), exactly 448 or 127 (amax).
// Not quantised: values are finite.
bool form_holds(const PageShape& shape, Bytes codes, Bytes scale);

}  // namespace indexpool::verify::faults
