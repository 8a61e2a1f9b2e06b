// Rows of 32 channels in f32 and bf16: what the problems of mutants of attention kernels have.
// Shadows kernels/attention/row_instances.hpp.
#pragma once

#include <cstdint>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

template <class F>
void with_row_instance(std::int64_t, DType storage, F&& f) {
  if (storage == DType::f32) return f.template operator()<32, DType::f32>();
  f.template operator()<32, DType::bf16>();
}

}  // namespace indexpool::kernels
