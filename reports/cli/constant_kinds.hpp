// What the constants behind a term rest on.
#pragma once

#include <string>

#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"

namespace indexpool::cli {

// "measured", "published", "assumed", or several: the kinds of the device's constants whose source
// the term names; with "fitted" where an implementation's own constants come in. "declared" when no
// constant of the device does.
std::string constant_kinds(const CostTerm& term, const DeviceSpec& device, bool fitted);

}  // namespace indexpool::cli
