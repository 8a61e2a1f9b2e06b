// What each layer stores and moves, from the shapes alone.
#pragma once

#include <vector>

#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// A row per layer, the chosen design as a whole ("layered"), and the pair kept for every pool
// ("pair_per_pool"), which is why it is folded instead.
std::vector<LayerCost> layer_costs(const PageShape& shape, std::int64_t index_kpool);

}  // namespace indexpool::verify::faults
