// The row lengths and storage dtypes that kernels of attention are compiled for. A mutant build
// puts a file of this name with fewer of them first on its include path.
#pragma once

#include <cstdint>

#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {

// f.template operator()<dim, storage>() for rows of 32, 64 or 128 channels.
template <class F>
void with_row_instance(std::int64_t dim, DType storage, F&& f) {
  const auto with_storage = [&]<int K>() {
    if (storage == DType::f32) return f.template operator()<K, DType::f32>();
    if (storage == DType::f16) return f.template operator()<K, DType::f16>();
    return f.template operator()<K, DType::bf16>();
  };
  if (dim == 32) return with_storage.template operator()<32>();
  if (dim == 64) return with_storage.template operator()<64>();
  return with_storage.template operator()<128>();
}

}  // namespace indexpool::kernels
