// Terms in words. Internal to the layer.
#pragma once

#include <string>
#include <utility>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"

namespace indexpool {

std::string amount(double value, const char* unit);  // "13.2 MB": four digits and a prefix

// The term whose time at each corner is seconds(corner).
template <class SecondsAt>
CostTerm cost_term(const char* name, SecondsAt seconds, std::string formula, std::string source) {
  return {name,
          Seconds(seconds(Corner::expected)),
          Seconds(seconds(Corner::fastest)),
          Seconds(seconds(Corner::slowest)),
          std::move(formula),
          std::move(source)};
}

inline CostTerm nothing(const char* name) { return {name, {}, {}, {}, "nothing to do", ""}; }

}  // namespace indexpool
