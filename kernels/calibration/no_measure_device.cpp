// Built without a CUDA toolkit: there is nothing to run.
#include "indexpool/kernels/calibration/measure_device.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {

calibration::Samples measure_device(const CalibrationOptions&) {
  throw EnvironmentError(
      "built without a CUDA toolkit, so no GPU can be measured: put nvcc on PATH and configure "
      "again with -DINDEXPOOL_CUDA=ON, or give --samples FILE as a machine with a GPU saved it");
}

}  // namespace indexpool::kernels
