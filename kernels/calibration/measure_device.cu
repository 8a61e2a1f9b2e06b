// Runs the micro-kernels one after another.
#include <string>

#include "indexpool/kernels/calibration/calibration_run.cuh"
#include "indexpool/kernels/calibration/measure_device.hpp"

namespace indexpool::kernels {
namespace {

std::int64_t attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

calibration::DeviceFacts facts_of(const Target& target, const std::string& date) {
  const Environment environment = target.environment();
  calibration::DeviceFacts facts;
  facts.name = environment.device;
  facts.driver = environment.driver;
  facts.toolkit = environment.toolkit;
  facts.date = date;
  facts.compute_capability = std::to_string(attribute(cudaDevAttrComputeCapabilityMajor)) + "." +
                             std::to_string(attribute(cudaDevAttrComputeCapabilityMinor));
  facts.sm_count = attribute(cudaDevAttrMultiProcessorCount);
  facts.warps_per_sm = attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / 32;
  std::size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  facts.memory_bytes = static_cast<std::int64_t>(total_bytes);
  facts.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  facts.shared_bytes_per_sm = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  // kHz and bits; two transfers a clock.
  facts.memory_peak_bytes_per_s =
      2 * 1e3 * static_cast<double>(attribute(cudaDevAttrMemoryClockRate)) *
      static_cast<double>(attribute(cudaDevAttrGlobalMemoryBusWidth)) / 8;
  return facts;
}

}  // namespace

calibration::Times CalibrationRun::timed(const std::function<void()>& body) const {
  const auto measured = target.measure(body, repeats(), false);
  require(measured.has_value(), "a CUDA target measures");
  return {measured->median.value, measured->p10.value, measured->p90.value};
}

calibration::Samples measure_device(const CalibrationOptions& options) {
  const std::unique_ptr<Target> target = make_cuda_target();
  calibration::Samples samples;
  samples.facts = facts_of(*target, options.date);
  CalibrationRun run{*target, options, samples, target->compute_capability()};
  options.advance("warming up the clocks");
  warm_clocks(run);
  options.advance("streams through device memory");
  measure_streams(run);
  options.advance("rounds over the L2");
  measure_cached_reads(run);
  options.advance("rates of the SMs");
  measure_rates(run);
  options.advance("rates of matrix instructions");
  measure_matrix_rates(run);
  options.advance("latencies");
  measure_chains(run);
  options.advance("launches");
  measure_launches(run);
  if (const std::string damage = target->check_guards(); !damage.empty())
    throw InternalError("a calibration kernel left its buffer: " + damage);
  return samples;
}

}  // namespace indexpool::kernels
