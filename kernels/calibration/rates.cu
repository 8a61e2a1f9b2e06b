// Issue, pipes and shared memory of every SM.
#include <utility>

#include "indexpool/kernels/calibration/rate_kernel.cuh"

namespace indexpool::kernels {
namespace {

using calibration::Rate;

constexpr int chains = 8;  // independent operands of a thread

struct FusedBody {
  static constexpr int steps = 64;
  float values[chains], factor, addend;
  __device__ explicit FusedBody(const RateArgs& args) : factor(args.factor), addend(args.addend) {
    for (int k = 0; k < chains; ++k) values[k] = static_cast<float>(threadIdx.x + k);
  }
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < steps; ++i) {
#pragma unroll
      for (int k = 0; k < chains; ++k) values[k] = __fmaf_rn(values[k], factor, addend);
    }
  }
  __device__ std::uint64_t result() const {
    float sum = 0;
    for (int k = 0; k < chains; ++k) sum += values[k];
    return __float_as_uint(sum);
  }
};

struct UnfusedBody : FusedBody {
  using FusedBody::FusedBody;
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < steps; i += 2) {
#pragma unroll
      for (int k = 0; k < chains; ++k) {
        values[k] = __fmul_rn(values[k], factor);
        values[k] = __fadd_rn(values[k], addend);
      }
    }
  }
};

// As many products as three-input logic operations: together they can fill the schedulers where
// either pipe alone takes a warp every second clock.
struct IssueBody : FusedBody {
  static constexpr int mixed_steps = 32;
  std::uint32_t words[chains], seed, mask;
  __device__ explicit IssueBody(const RateArgs& args)
      : FusedBody(args), seed(args.seed), mask(args.mask) {
    for (int k = 0; k < chains; ++k) words[k] = threadIdx.x + k;
  }
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < mixed_steps; ++i) {
#pragma unroll
      for (int k = 0; k < chains; ++k) {
        values[k] = __fmul_rn(values[k], 0.999f);
        // (word & mask) ^ seed
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;\n" : "+r"(words[k]) : "r"(mask), "r"(seed));
      }
    }
  }
  __device__ std::uint64_t result() const {
    std::uint32_t all = 0;
    for (int k = 0; k < chains; ++k) all ^= words[k];
    return FusedBody::result() ^ all;
  }
};

// 16 bytes a lane, a warp's 512 contiguous: no two lanes of a quarter share a bank.
struct SharedBody {
  std::uint32_t address, seen = 0;
  __device__ explicit SharedBody(const RateArgs& args) {
    __shared__ uint4 words[rate_block_threads + 32 * chains];
    for (unsigned i = threadIdx.x; i < rate_block_threads + 32 * chains; i += rate_block_threads) {
      words[i] = {i, args.seed, args.mask, i};
    }
    __syncthreads();
    address = ip::detail::shared_address(&words[threadIdx.x]);
  }
  __device__ void round() {
#pragma unroll
    for (int k = 0; k < chains; ++k) {
      uint4 word;
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                   : "r"(address + 512 * k));
      seen ^= word.x ^ word.y ^ word.z ^ word.w;
    }
  }
  __device__ std::uint64_t result() const { return seen; }
};

struct IntegerBody {
  static constexpr int steps = 32;
  std::uint32_t words[chains], seed, mask;
  __device__ explicit IntegerBody(const RateArgs& args) : seed(args.seed), mask(args.mask) {
    for (int k = 0; k < chains; ++k) words[k] = threadIdx.x + k;
  }
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < steps; ++i) {
#pragma unroll
      for (int k = 0; k < chains; ++k) {
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;\n" : "+r"(words[k]) : "r"(mask), "r"(seed));
      }
    }
  }
  __device__ std::uint64_t result() const {
    std::uint32_t all = 0;
    for (int k = 0; k < chains; ++k) all ^= words[k];
    return all;
  }
};

// 2^x, one instruction of the special pipe; most numbers soon are infinite, which costs the same.
struct SpecialBody : FusedBody {
  static constexpr int special_steps = 16;
  using FusedBody::FusedBody;
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < special_steps; ++i) {
#pragma unroll
      for (int k = 0; k < chains; ++k) {
        asm volatile("ex2.approx.ftz.f32 %0, %0;\n" : "+f"(values[k]));
      }
    }
  }
};

constexpr double lanes = 32;

const RateShape shapes[] = {
    {Rate::f32_fused, "", rate_kernel<FusedBody>, 2 * lanes* FusedBody::steps* chains, 256, 0},
    {Rate::f32_unfused, "", rate_kernel<UnfusedBody>, lanes* FusedBody::steps* chains, 256, 0},
    {Rate::issue, "", rate_kernel<IssueBody>, 2.0 * IssueBody::mixed_steps* chains, 256, 0},
    {Rate::shared, "", rate_kernel<SharedBody>, 16 * lanes* chains, 2048, 0},
    {Rate::integer, "", rate_kernel<IntegerBody>, IntegerBody::steps* chains, 256, 0},
    {Rate::special, "", rate_kernel<SpecialBody>, SpecialBody::special_steps* chains, 128, 0}};

}  // namespace

void measure_rate(CalibrationRun& run, const RateShape& shape, std::int64_t warps_per_sm) {
  if (run.compute_capability < shape.least_compute_capability) return;
  const auto blocks =
      static_cast<unsigned>(run.facts().sm_count * warps_per_sm * 32 / rate_block_threads);
  std::vector<LoopClock> clocks(blocks);
  const auto clock_bytes = static_cast<std::int64_t>(blocks * sizeof(LoopClock));
  const CalibrationBuffer sink(run.target, "sink", 4);
  const CalibrationBuffer device_clocks(run.target, "clocks", clock_bytes);
  RateArgs args;
  args.rounds = shape.rounds;
  args.seed = 0x3f1c0de5;
  args.mask = 0x7ffffffb;
  args.factor = 0.999f;
  args.addend = 1;
  args.never = ~std::uint64_t{0};
  args.clocks = device_clocks.as<LoopClock>();
  args.sink = sink.as<std::uint32_t>();
  const calibration::Times times = run.timed([&] {
    shape.kernel<<<blocks, rate_block_threads, 0, run.stream()>>>(args);
    check_cuda(cudaGetLastError(), "a throughput kernel's launch");
  });
  run.target.download(clocks.data(), device_clocks.get(), clock_bytes);
  // The block whose clocks were read with the least delay.
  const LoopClock& clock = *std::min_element(
      clocks.begin(), clocks.end(),
      [](const LoopClock& a, const LoopClock& b) { return a.slack() < b.slack(); });
  calibration::RateSample sample;
  sample.rate = shape.rate;
  sample.dtype = shape.dtype;
  sample.warps_per_sm = warps_per_sm;
  sample.operations = shape.operations_per_warp * static_cast<double>(shape.rounds) *
                      static_cast<double>(run.facts().sm_count * warps_per_sm);
  sample.clock_hz = clock.clocks() / clock.seconds();
  sample.seconds = times;
  run.samples.rates.push_back(std::move(sample));
}

void measure_rates(CalibrationRun& run) {
  for (const RateShape& shape : shapes) {
    for (const std::int64_t share : {4, 2, 1}) {
      measure_rate(run, shape, run.facts().warps_per_sm / share);
    }
  }
}

void warm_clocks(CalibrationRun& run) {
  RateShape shape = shapes[0];
  shape.rounds *= 32;  // some 35 ms, sixteen times
  calibration::Samples kept = run.samples;
  measure_rate(run, shape, run.facts().warps_per_sm);
  run.samples = std::move(kept);
}

}  // namespace indexpool::kernels
