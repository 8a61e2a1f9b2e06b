// How far a dot product may be off. Internal to the layer.
#pragma once

#include <cstdint>

#include "indexpool/reference/indexer.hpp"

namespace indexpool::reference {

// Relative to S = sum |x y| over `dim` products, `folded_scales` of whose factors round beforehand
// (the model is in logits.cpp).
double dot_error(const Accumulation& accumulation, std::int64_t dim, int folded_scales);

}  // namespace indexpool::reference
