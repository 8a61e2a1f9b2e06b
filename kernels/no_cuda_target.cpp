// Built without a CUDA toolkit: the target exists in the interface only.
#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {

std::unique_ptr<Target> make_cuda_target() {
  throw EnvironmentError(
      "built without a CUDA toolkit: put nvcc on PATH and configure again with "
      "-DINDEXPOOL_CUDA=ON, or use --target simt");
}

}  // namespace indexpool::kernels
