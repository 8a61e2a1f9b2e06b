// Streams through device memory and rounds over footprints of the L2.
//   read   16 to 128 B a thread in flight, XORed; every byte once
//   write  the thread's index, four times
//   copy   first half of the footprint to the second
// grid: threads_per_sm on every SM; thread t takes the 16-byte words t, t + threads, ...
#include "indexpool/kernels/calibration/calibration_run.cuh"

namespace indexpool::kernels {
namespace {

using calibration::Access;

constexpr std::int64_t word_bytes = sizeof(uint4);

__device__ std::uint32_t folded(uint4 word) { return word.x ^ word.y ^ word.z ^ word.w; }

struct StreamArgs {
  const uint4* from;
  uint4* to;
  std::int64_t words;   // a multiple of InFlight times the grid's threads
  std::uint32_t never;  // a value that the XOR of the words does not have
  std::uint32_t* sink;
};

constexpr int block_threads = 256;
// Blocks of an SM: eight loads in flight need the registers of half of the threads.
constexpr int resident_blocks(int in_flight) { return in_flight < 8 ? 8 : 4; }

template <Access Kind, int InFlight>
__global__ __launch_bounds__(block_threads,
                             resident_blocks(InFlight)) void stream_kernel(StreamArgs args) {
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  std::uint32_t seen = 0;
#pragma unroll 1
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.words;
       i += InFlight * threads) {
    uint4 words[InFlight];
#pragma unroll
    for (int k = 0; k < InFlight; ++k) {
      const auto index = static_cast<std::uint32_t>(i);
      words[k] =
          Kind == Access::write ? uint4{index, index, index, index} : args.from[i + k * threads];
    }
#pragma unroll
    for (int k = 0; k < InFlight; ++k) {
      if (Kind == Access::read) {
        seen ^= folded(words[k]);
      } else {
        args.to[i + k * threads] = words[k];
      }
    }
  }
  if (Kind == Access::read && seen == args.never) *args.sink = seen;
}

template <Access Kind>
auto stream_kernel_of(std::int64_t in_flight) {
  switch (in_flight) {
    case 1:
      return stream_kernel<Kind, 1>;
    case 2:
      return stream_kernel<Kind, 2>;
    case 4:
      return stream_kernel<Kind, 4>;
    case 8:
      return stream_kernel<Kind, 8>;
    default:
      throw InternalError("no stream keeps that many accesses in flight");
  }
}

auto stream_kernel_of(Access kind, std::int64_t in_flight) {
  return kind == Access::read    ? stream_kernel_of<Access::read>(in_flight)
         : kind == Access::write ? stream_kernel_of<Access::write>(in_flight)
                                 : stream_kernel_of<Access::copy>(in_flight);
}

struct Grid {
  unsigned blocks, threads;
};
Grid grid_of(const CalibrationRun& run, std::int64_t threads_per_sm) {
  const std::int64_t threads = std::min<std::int64_t>(block_threads, threads_per_sm);
  return {static_cast<unsigned>(run.facts().sm_count * (threads_per_sm / threads)),
          static_cast<unsigned>(threads)};
}

void measure_stream(CalibrationRun& run, const CalibrationBuffer& buffer, Access kind,
                    std::int64_t footprint, std::int64_t threads_per_sm, std::int64_t in_flight) {
  const Grid grid = grid_of(run, threads_per_sm);
  const std::int64_t side = kind == Access::copy ? footprint / 2 : footprint;
  const std::int64_t round = in_flight * grid.blocks * grid.threads;
  StreamArgs args;
  args.words = side / word_bytes / round * round;
  args.from = buffer.as<uint4>();
  args.to = buffer.as<uint4>() + (kind == Access::copy ? args.words : 0);
  args.never = 0x5eed5eed;
  args.sink = buffer.as<std::uint32_t>();
  const auto kernel = stream_kernel_of(kind, in_flight);
  const calibration::Times times = run.timed([&] {
    kernel<<<grid.blocks, grid.threads, 0, run.stream()>>>(args);
    check_cuda(cudaGetLastError(), "a stream's launch");
  });
  run.samples.streams.push_back({kind, args.words * word_bytes * (kind == Access::copy ? 2 : 1),
                                 threads_per_sm, in_flight, times});
}

// --- rounds over a footprint ---
struct CachedArgs {
  const uint4* from;
  std::uint32_t words, rounds;  // a round: InFlight words a thread
  std::uint32_t never;
  std::uint32_t* sink;
};

// Thread t reads the words t, t + threads, ... modulo the footprint. ld.cg keeps them out of L1.
template <int InFlight>
__global__ __launch_bounds__(block_threads,
                             resident_blocks(InFlight)) void cached_read_kernel(CachedArgs args) {
  const std::uint32_t step = (gridDim.x * blockDim.x) % args.words;
  std::uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) % args.words, seen = 0;
#pragma unroll 1
  for (std::uint32_t round = 0; round < args.rounds; ++round) {
    uint4 words[InFlight];
#pragma unroll
    for (int k = 0; k < InFlight; ++k) {
      words[k] = __ldcg(args.from + at);
      at += step;
      if (at >= args.words) at -= args.words;
    }
#pragma unroll
    for (int k = 0; k < InFlight; ++k) seen ^= folded(words[k]);
  }
  if (seen == args.never) *args.sink = seen;
}

template <int InFlight>
void measure_cached_read(CalibrationRun& run, const CalibrationBuffer& buffer,
                         std::int64_t footprint, std::int64_t threads_per_sm,
                         std::int64_t least_bytes) {
  const Grid grid = grid_of(run, threads_per_sm);
  const std::int64_t round_bytes = InFlight * word_bytes * grid.blocks * grid.threads;
  CachedArgs args;
  args.from = buffer.as<uint4>();
  args.words = static_cast<std::uint32_t>(footprint / word_bytes);
  args.rounds = static_cast<std::uint32_t>(least_bytes / round_bytes);
  args.never = 0x5eed5eed;
  args.sink = buffer.as<std::uint32_t>();
  const calibration::Times times = run.timed([&] {
    cached_read_kernel<InFlight><<<grid.blocks, grid.threads, 0, run.stream()>>>(args);
    check_cuda(cudaGetLastError(), "a cached read's launch");
  });
  run.samples.cached_reads.push_back(
      {footprint, round_bytes * args.rounds, threads_per_sm, InFlight, times});
}

constexpr std::int64_t gib = std::int64_t{1} << 30;

}  // namespace

void measure_streams(CalibrationRun& run) {
  const CalibrationBuffer buffer(run.target, "stream", 4 * gib);
  run.target.fill_random(buffer.get(), 4 * gib, {});
  // From a quarter of the bytes in flight that a pure stream needs to several times as many.
  for (const std::int64_t threads : {128, 256, 512, 1024, 2048}) {
    for (const int in_flight : {1, 2, 4, 8}) {
      if (threads > block_threads * resident_blocks(in_flight)) continue;
      measure_stream(run, buffer, Access::read, gib, threads, in_flight);
    }
  }
  struct Shape {
    std::int64_t threads, in_flight;
  };
  for (const Access kind : {Access::read, Access::write, Access::copy}) {
    for (const std::int64_t footprint : {2 * gib, 3 * gib, 4 * gib}) {
      for (const auto& [threads, in_flight] :
           {Shape{1024, 4}, {2048, 2}, {512, 8}, {1024, 8}, {2048, 4}}) {
        measure_stream(run, buffer, kind, footprint, threads, in_flight);
      }
    }
  }
}

void measure_cached_reads(CalibrationRun& run) {
  const std::int64_t l2 = run.facts().l2_bytes;
  const CalibrationBuffer buffer(run.target, "rounds over the L2", 8 * l2);
  run.target.fill_random(buffer.get(), 8 * l2 / 4 * 4, {});
  // In 1/32 of the L2: dense where the hits end.
  for (const std::int64_t part : {1,  2,  4,  8,  12, 16, 20, 22, 24, 26, 28, 29,  30, 31,
                                  32, 33, 34, 36, 38, 40, 44, 48, 56, 64, 96, 128, 256}) {
    const std::int64_t footprint = l2 / 32 * part;
    measure_cached_read<8>(run, buffer, footprint, 1024, 4 * gib);
    measure_cached_read<1>(run, buffer, footprint, 128, gib);
  }
}

}  // namespace indexpool::kernels
