// The Walsh-Hadamard rotation as a matrix product. Internal to the layer.
#pragma once

#include "indexpool/model/dtype.hpp"
#include "indexpool/reference/bounded.hpp"

namespace indexpool::reference {

// Rows [.., D] times the Sylvester matrix times D^-0.5, in f32, rounded to `storage`. Encloses any
// order of butterflies. D must be a power of two (ConfigError). Instantiated for double and Quad.
template <class T>
Bounded rotate(const Bounded& rows, DType storage);

}  // namespace indexpool::reference
