// Latencies: chains of steps of which each needs what the one before gave.
//   hbm, l2      one thread follows pointers that were laid out at random, past the L1
//   shared       the same through shared memory; atomic: with an atomic that returns the pointer
//   shuffle, matrix, arithmetic   one warp feeds its result back
//   barrier      all threads of a block
// Of the grid's blocks one works, so that chases start from several SMs.
#include <bit>

#include "indexpool/kernels/calibration/calibration_run.cuh"

namespace indexpool::kernels {
namespace {

using calibration::Chain;
using calibration::ChainSample;

constexpr int links_per_round = 16;

struct ChainArgs {
  std::uint64_t start;  // of a chase
  std::uint32_t block;  // the one that works
  std::int64_t rounds;
  float factor, addend;  // 0.5 and 1: what the compiler must not know
  std::uint32_t zero, turn;
  LoopClock* clock;
};

// A link's constructor sets up; step() is timed; end() is read afterwards.
struct ChaseLink {
  std::uint64_t at;
  __device__ explicit ChaseLink(const ChainArgs& args) : at(args.start) {}
  __device__ void step() { asm volatile("ld.global.cg.u64 %0, [%0];\n" : "+l"(at) : : "memory"); }
  __device__ std::uint64_t end() const { return at; }
};

// 256 words, each the address of the word 33 further.
struct SharedLink {
  std::uint32_t at, zero;
  __device__ explicit SharedLink(const ChainArgs& args) : zero(args.zero) {
    constexpr int count = 256;
    __shared__ std::uint32_t words[count];
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      words[i] = ip::detail::shared_address(&words[(i + 33) % count]);
    }
    at = ip::detail::shared_address(&words[0]);
  }
  __device__ void step() { asm volatile("ld.shared.u32 %0, [%0];\n" : "+r"(at) : : "memory"); }
  __device__ std::uint64_t end() const { return at; }
};

struct AtomicLink : SharedLink {
  using SharedLink::SharedLink;
  __device__ void step() {
    asm volatile("atom.shared.add.u32 %0, [%0], %1;\n" : "+r"(at) : "r"(zero) : "memory");
  }
};

struct ShuffleLink {
  std::uint32_t value;
  __device__ explicit ShuffleLink(const ChainArgs&) : value(threadIdx.x) {}
  __device__ void step() { value = __shfl_xor_sync(ip::full_mask, value, 1); }
  __device__ std::uint64_t end() const { return value; }
};

struct BarrierLink {
  __device__ explicit BarrierLink(const ChainArgs&) {}
  __device__ void step() { __syncthreads(); }
  __device__ std::uint64_t end() const { return 0; }
};

struct ArithmeticLink {
  float value, factor, addend;
  __device__ explicit ArithmeticLink(const ChainArgs& args)
      : value(static_cast<float>(threadIdx.x)), factor(args.factor), addend(args.addend) {}
  __device__ void step() { value = __fmaf_rn(value, factor, addend); }
  __device__ std::uint64_t end() const { return __float_as_uint(value); }
};

template <class Accumulator, void (*Multiply)(Accumulator (&)[4], const std::uint32_t (&)[4],
                                              const std::uint32_t (&)[2])>
struct MatrixLink {
  Accumulator sum[4] = {};
  std::uint32_t a[4], b[2], turn;
  __device__ explicit MatrixLink(const ChainArgs& args) : turn(args.turn) {
    for (int i = 0; i < 4; ++i) a[i] = args.turn * (threadIdx.x + i);
    for (int i = 0; i < 2; ++i) b[i] = args.turn;
  }
  // A turns (not waiting for the sum): a product that stays the same can leave the loop where the
  // instruction is made of a product and an addition.
  __device__ void step() {
#pragma unroll
    for (std::uint32_t& word : a) word = __funnelshift_l(word, word, turn);
    Multiply(sum, a, b);
  }
  __device__ std::uint64_t end() const {
    return static_cast<std::uint64_t>(sum[0] + sum[1] + sum[2] + sum[3]);
  }
};

template <class Link>
__global__ void chain_kernel(ChainArgs args) {
  if (blockIdx.x != args.block) return;
  Link link(args);
  LoopClock clock = timed_loop(args.rounds, [&] {
#pragma unroll
    for (int k = 0; k < links_per_round; ++k) link.step();
  });
  clock.arrived = link.end();
  if (threadIdx.x == 0) *args.clock = clock;
}

// Node i, `spacing` bytes from its neighbours, points to node (a i + c) mod nodes: a permutation of
// one cycle, as `nodes` is a power of two (Hull and Dobell; a and c of Numerical Recipes).
__global__ void lay_out_chase(std::byte* base, std::uint32_t nodes, std::int64_t spacing) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= nodes) return;
  const std::uint32_t next = (1664525u * i + 1013904223u) & (nodes - 1);
  *reinterpret_cast<std::uint64_t*>(base + i * spacing) =
      reinterpret_cast<std::uint64_t>(base + next * spacing);
}

struct ChainShape {
  Chain chain;
  void (*kernel)(ChainArgs);
  const char* dtype;
  int threads;
  int least_compute_capability;
};
const ChainShape chain_shapes[] = {
    {Chain::shared, chain_kernel<SharedLink>, "", 1, 0},
    {Chain::atomic, chain_kernel<AtomicLink>, "", 1, 0},
    {Chain::shuffle, chain_kernel<ShuffleLink>, "", 32, 0},
    {Chain::arithmetic, chain_kernel<ArithmeticLink>, "", 32, 0},
    {Chain::barrier, chain_kernel<BarrierLink>, "", 256, 0},
    {Chain::barrier, chain_kernel<BarrierLink>, "", 512, 0},
    {Chain::barrier, chain_kernel<BarrierLink>, "", 1024, 0},
    {Chain::matrix, chain_kernel<MatrixLink<float, ip::mma_m16n8k16_bf16>>, "bf16", 32, 0},
    {Chain::matrix, chain_kernel<MatrixLink<float, ip::mma_m16n8k16_f16>>, "f16", 32, 0},
    {Chain::matrix, chain_kernel<MatrixLink<std::int32_t, ip::mma_m16n8k32_s8>>, "i8", 32, 0},
    {Chain::matrix, chain_kernel<MatrixLink<float, ip::mma_m16n8k32_e4m3>>, "e4m3", 32, 89}};

// Blocks that take their turns, from SMs all over the device.
constexpr int starting_points = 8;

class Chains {
 public:
  explicit Chains(CalibrationRun& run)
      : run_(run), clock_(run.target, "clock", sizeof(LoopClock)) {}

  // `start` moves on to where the chase ended. The first run only loads the code.
  void measure(const ChainShape& shape, std::int64_t rounds, std::int64_t footprint,
               std::uint64_t& start) {
    for (int turn = -1; turn < starting_points; ++turn) {
      const LoopClock clock = run_once(shape, rounds, std::max(turn, 0), start);
      start = clock.arrived;
      if (turn < 0) continue;
      run_.samples.chains.push_back({shape.chain, shape.dtype, footprint, shape.threads,
                                     rounds * links_per_round, clock.clocks(), clock.seconds()});
    }
  }

  LoopClock run_once(const ChainShape& shape, std::int64_t rounds, int turn, std::uint64_t start) {
    const auto blocks = static_cast<unsigned>(run_.facts().sm_count);
    ChainArgs args;
    args.start = start;
    args.block = blocks * static_cast<unsigned>(turn) / starting_points;
    args.rounds = rounds;
    args.factor = 0.5f;
    args.addend = 1;
    args.zero = 0;
    args.turn = 7;
    args.clock = clock_.as<LoopClock>();
    shape.kernel<<<blocks, static_cast<unsigned>(shape.threads), 0, run_.stream()>>>(args);
    check_cuda(cudaGetLastError(), "a chain's launch");
    LoopClock clock{};
    run_.target.synchronize();
    run_.target.download(&clock, clock_.get(), sizeof clock);
    return clock;
  }

  void chase(Chain chain, std::int64_t footprint, std::int64_t spacing, std::int64_t rounds) {
    const CalibrationBuffer buffer(run_.target, "chase", footprint);
    const auto nodes = static_cast<std::uint32_t>(footprint / spacing);
    lay_out_chase<<<(nodes + 255) / 256, 256, 0, run_.stream()>>>(buffer.get(), nodes, spacing);
    check_cuda(cudaGetLastError(), "laying out a chase");
    const ChainShape shape{chain, chain_kernel<ChaseLink>, "", 1, 0};
    auto start = reinterpret_cast<std::uint64_t>(buffer.get());
    if (chain == Chain::l2) {  // once around, so that all of it is there
      start = run_once(shape, nodes / links_per_round, 0, start).arrived;
    } else {  // what the layout wrote leaves the L2; a chase comes nowhere twice
      const CalibrationBuffer flush(run_.target, "L2 flush", 4 * run_.facts().l2_bytes);
    }
    measure(shape, rounds, footprint, start);
  }

 private:
  CalibrationRun& run_;
  CalibrationBuffer clock_;
};

}  // namespace

void measure_chains(CalibrationRun& run) {
  Chains chains(run);
  std::uint64_t nowhere = 0;
  for (const ChainShape& shape : chain_shapes) {
    if (run.compute_capability < shape.least_compute_capability) continue;
    chains.measure(shape, 16384, 0, nowhere);
  }
  const auto l2 = static_cast<std::uint64_t>(run.facts().l2_bytes);
  const auto inside = static_cast<std::int64_t>(std::bit_floor(l2 / 8));
  for (const std::int64_t footprint : {inside / 2, inside, 2 * inside}) {
    chains.chase(Chain::l2, footprint, 128, 256);
  }
  const auto beyond = static_cast<std::int64_t>(std::bit_ceil(4 * l2));
  for (const std::int64_t footprint : {beyond, 2 * beyond, 8 * beyond}) {
    chains.chase(Chain::hbm, footprint, 128, 256);
  }
}

}  // namespace indexpool::kernels
