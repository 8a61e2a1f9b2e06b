// The storage dtypes and lengths of vectors that kernels of groups are compiled for. A mutant build
// puts a file of this name with fewer of them first on its include path.
#pragma once

#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

// f.template operator()<storage, pieces>() for what the arguments select.
template <class F>
void with_group_instance(DType storage, std::int64_t head_dim, F&& f) {
  const auto with_pieces = [&]<DType T>() {
    switch (pieces_of(head_dim)) {
      case 1:
        return f.template operator()<T, 1>();
      case 2:
        return f.template operator()<T, 2>();
      case 4:
        return f.template operator()<T, 4>();
      default:
        return f.template operator()<T, 8>();
    }
  };
  if (storage == DType::f32) return with_pieces.template operator()<DType::f32>();
  if (storage == DType::f16) return with_pieces.template operator()<DType::f16>();
  return with_pieces.template operator()<DType::bf16>();
}

}  // namespace indexpool::kernels
