// What a launch costs: an empty kernel, timed as every other kernel is (Target::measure, replay).
#include "indexpool/kernels/calibration/calibration_run.cuh"

namespace indexpool::kernels {
namespace {

using calibration::Launch;

struct EmptyArgs {
  std::byte arguments[128];  // as many as a kernel of ours has
};
__global__ void empty_kernel(EmptyArgs) {}

calibration::Times times_of(const std::optional<Measurement>& measured) {
  require(measured.has_value(), "a CUDA target measures");
  return {measured->median.value, measured->p10.value, measured->p90.value};
}

}  // namespace

void measure_launches(CalibrationRun& run) {
  const int repeats = run.options.quick ? 15 : 51;
  for (const std::int64_t per_sm : {0, 1, 4}) {
    const std::int64_t blocks = std::max<std::int64_t>(1, per_sm * run.facts().sm_count);
    const auto launch = [&] {
      empty_kernel<<<static_cast<unsigned>(blocks), 256, 0, run.stream()>>>(EmptyArgs{});
      check_cuda(cudaGetLastError(), "an empty kernel's launch");
    };
    for (const bool cold : {true, false}) {
      run.samples.launches.push_back({cold ? Launch::cold : Launch::warm, blocks, 1,
                                      times_of(run.target.measure(launch, repeats, cold))});
    }
    for (const int launches : {8, 32, 128, 256}) {
      run.samples.launches.push_back({Launch::graph, blocks, launches,
                                      times_of(run.target.replay(launch, launches, repeats))});
    }
  }
}

}  // namespace indexpool::kernels
