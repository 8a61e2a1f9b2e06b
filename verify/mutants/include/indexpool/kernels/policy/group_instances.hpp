// Vectors of up to 256 channels in f32 and bf16: what the problems of mutants of policy kernels
// have. Shadows kernels/policy/group_instances.hpp.
#pragma once

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

template <class F>
void with_group_instance(DType storage, std::int64_t, F&& f) {
  if (storage == DType::f32) return f.template operator()<DType::f32, 1>();
  f.template operator()<DType::bf16, 1>();
}

}  // namespace indexpool::kernels
