// Which rows a fit may not see.
#pragma once

#include <cstdint>
#include <string_view>

namespace indexpool {

// By a hash of the family and the seed, so that a row stays on its side whatever else the table
// holds, in whatever order, and related rows (one shape measured in several ways) stay together.
// `share` of the families are held out, from 0 (none) to 1 (all).
bool held_out(std::string_view family, std::uint64_t seed, double share);

// In which of `folds` parts of the other families it falls, from 0; independent of held_out().
int fold_of(std::string_view family, std::uint64_t seed, int folds);

}  // namespace indexpool
