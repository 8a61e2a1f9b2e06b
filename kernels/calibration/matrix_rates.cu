// Matrix instructions of every SM: eight accumulators a warp, so that none waits for another.
#include "indexpool/kernels/calibration/rate_kernel.cuh"

namespace indexpool::kernels {
namespace {

using calibration::Rate;

constexpr int accumulators = 8, repeats = 4;
constexpr double matrix_ops = accumulators * repeats;  // of a round

// Random signs and mantissas between 1 and 2 (integers: any): real data costs more power than
// zeros. Turned, A holds any bits.
struct Pattern {
  std::uint32_t keep, set;
};
constexpr Pattern bf16_pattern = {0x807f807f, 0x3f803f80}, f16_pattern = {0x83ff83ff, 0x3c003c00},
                  i8_pattern = {0xffffffff, 0}, e4m3_pattern = {0x87878787, 0x38383838};

template <class Accumulator, bool Turning, std::uint32_t Keep, std::uint32_t Set,
          void (*Multiply)(Accumulator (&)[4], const std::uint32_t (&)[4],
                           const std::uint32_t (&)[2])>
struct MatrixBody {
  Accumulator sums[accumulators][4] = {};
  std::uint32_t a[2][4], b[4][2], turn;

  __device__ explicit MatrixBody(const RateArgs& args) : turn(args.seed & 31) {
    std::uint32_t bits = args.seed + threadIdx.x + blockIdx.x * blockDim.x;
    const auto next = [&] {  // xorshift32 (Marsaglia, Xorshift RNGs, 2003)
      bits ^= bits << 13;
      bits ^= bits >> 17;
      bits ^= bits << 5;
      return (bits & Keep) | Set;
    };
    for (auto& tile : a) {
      for (std::uint32_t& word : tile) word = next();
    }
    for (auto& tile : b) {
      for (std::uint32_t& word : tile) word = next();
    }
  }
  // Turning operands, one word an instruction: Hopper has no e4m3 instruction of a warp but a
  // product in f16 and an addition, and a product that stays the same leaves the loop.
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < repeats; ++i) {
#pragma unroll
      for (auto& tile : a) {
#pragma unroll
        for (std::uint32_t& word : tile) {
          if (Turning) word = __funnelshift_l(word, word, turn);
        }
      }
#pragma unroll
      for (int k = 0; k < accumulators; ++k) Multiply(sums[k], a[k / 4], b[k % 4]);
    }
  }
  __device__ std::uint64_t result() const {
    Accumulator all = 0;
    for (const auto& tile : sums) {
      for (const Accumulator sum : tile) all += sum;
    }
    return static_cast<std::uint64_t>(all);
  }
};

using Bf16 = MatrixBody<float, false, bf16_pattern.keep, bf16_pattern.set, ip::mma_m16n8k16_bf16>;
using F16 = MatrixBody<float, false, f16_pattern.keep, f16_pattern.set, ip::mma_m16n8k16_f16>;
using I8 = MatrixBody<std::int32_t, false, i8_pattern.keep, i8_pattern.set, ip::mma_m16n8k32_s8>;
using E4m3 = MatrixBody<float, true, e4m3_pattern.keep, e4m3_pattern.set, ip::mma_m16n8k32_e4m3>;

constexpr double flop_k16 = 2 * 16 * 8 * 16, flop_k32 = 2 * 16 * 8 * 32;
const RateShape shapes[] = {
    {Rate::matrix, "bf16", rate_kernel<Bf16>, flop_k16* matrix_ops, 2048, 0},
    {Rate::matrix, "f16", rate_kernel<F16>, flop_k16* matrix_ops, 2048, 0},
    {Rate::matrix, "i8", rate_kernel<I8>, flop_k32* matrix_ops, 2048, 0},
    {Rate::matrix, "e4m3", rate_kernel<E4m3>, flop_k32* matrix_ops, 2048, 89}};

}  // namespace

void measure_matrix_rates(CalibrationRun& run) {
  for (const RateShape& shape : shapes) {
    for (const std::int64_t warps : {4, 8, 12, 16}) measure_rate(run, shape, warps);
  }
}

}  // namespace indexpool::kernels
