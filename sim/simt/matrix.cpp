// Matrix operations of a warp: fragments to matrices and back, as in the PTX ISA. With g = lane / 4
// and t = lane % 4, register r of
//   a, 16-bit m16 k16: row g + 8 (r % 2), columns 2t, 2t + 1, plus 8 for r >= 2
//   b, 16-bit k16 n8:  rows 2t, 2t + 1, plus 8 for r = 1; column g
//   a, 8-bit m16 k32:  row g + 8 (r % 2), columns 4t ... 4t + 3, plus 16 for r >= 2
//   b, 8-bit k32 n8:   rows 4t ... 4t + 3, plus 16 for r = 1; column g
//   d, 32-bit m16 n8:  row g + 8 (r / 2), column 2t + r % 2
#include <bit>
#include <cstring>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/executor.hpp"
#include "indexpool/sim/simt/mma.hpp"

namespace indexpool::sim::simt {
namespace {

struct MatrixPayload {
  const std::uint32_t* a;
  const std::uint32_t* b;
  void* d;  // 4 words of 32 bits
};

// PerWord elements of type T in a register: 2 of 16 bits or 4 of 8 bits; k = 8 * PerWord.
template <class T, int PerWord>
struct Operands {
  static constexpr int depth = 8 * PerWord;
  T a[16][depth];
  T b[depth][8];
};

template <class T, int PerWord>
void gather(const Warp& warp, Operands<T, PerWord>& out) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto& from = *static_cast<const MatrixPayload*>(warp.threads[lane].payload);
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; ++r) {
      std::memcpy(&out.a[g + r % 2 * 8][PerWord * (t + r / 2 * 4)], &from.a[r], 4);
    }
    for (int r = 0; r < 2; ++r) {
      T elements[PerWord];
      std::memcpy(elements, &from.b[r], 4);
      for (int i = 0; i < PerWord; ++i) out.b[PerWord * (t + r * 4) + i][g] = elements[i];
    }
  }
}

// Element (row, column) of d is register row / 8 * 2 + column % 2 of lane row % 8 * 4 + column / 2.
template <class T>
T& accumulator(const Warp& warp, int row, int column) {
  const Thread& owner = warp.threads[row % 8 * 4 + column / 2];
  T* d = static_cast<T*>(static_cast<MatrixPayload*>(owner.payload)->d);
  return d[row / 8 * 2 + column % 2];
}

template <class T, int PerWord, class D, class Multiply>
void multiply(Executor& executor, Warp& warp, Multiply multiply_add) {
  Operands<T, PerWord> operands;
  gather(warp, operands);
  D d[16][8];
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) d[i][j] = accumulator<D>(warp, i, j);
  }
  multiply_add(&operands.a[0][0], &operands.b[0][0], &d[0][0]);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) accumulator<D>(warp, i, j) = d[i][j];
  }
  ++executor.counters.traffic.matrix_ops;
}

template <HalfFormat Format>
void complete_half(Executor& executor, Warp& warp, std::uint32_t) {
  const MatrixModel model = executor.session->options.matrix;
  multiply<std::uint16_t, 2, float>(
      executor, warp, [model](const std::uint16_t* a, const std::uint16_t* b, float* d) {
        multiply_add_16x8x16(model, Format, a, b, d);
      });
}

void complete_s8(Executor& executor, Warp& warp, std::uint32_t) {
  multiply<std::int8_t, 4, std::int32_t>(executor, warp, multiply_add_16x8x32_s8);
}

void complete_e4m3(Executor& executor, Warp& warp, std::uint32_t) {
  multiply<std::uint8_t, 4, float>(executor, warp, multiply_add_16x8x32_e4m3);
}

struct LoadPayload {
  std::uint32_t row[4];  // the 16 bytes this lane's address names
  std::uint32_t* out;
};

void complete_load(Executor&, Warp& warp, std::uint32_t) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto* to = static_cast<LoadPayload*>(warp.threads[lane].payload);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const Thread& owner = warp.threads[matrix * 8 + lane / 4];
      to->out[matrix] = static_cast<LoadPayload*>(owner.payload)->row[lane % 4];
    }
  }
}

constexpr WarpOperation bf16_operation{"mma_m16n8k16_bf16", complete_half<HalfFormat::bf16>, false};
constexpr WarpOperation f16_operation{"mma_m16n8k16_f16", complete_half<HalfFormat::f16>, false};
constexpr WarpOperation s8_operation{"mma_m16n8k32_s8", complete_s8, false};
constexpr WarpOperation e4m3_operation{"mma_m16n8k32_e4m3", complete_e4m3, false};
constexpr WarpOperation load_operation{"load_matrix_x4", complete_load, false};

void matrix_operation(const WarpOperation& operation, void* d, const std::uint32_t* a,
                      const std::uint32_t* b, const Where& where) {
  const QuietScope quiet;
  MatrixPayload payload{a, b, d};
  arrive(running_executor(), operation, full_mask, &payload, where);
}

}  // namespace

void load_matrix_x4(std::uint32_t (&out)[4], const void* shared_row, Where where) {
  enter_shared(shared_row, 16, false, where);
  LoadPayload payload{{}, out};
  std::memcpy(payload.row, shared_row, 16);
  const QuietScope quiet;
  arrive(running_executor(), load_operation, full_mask, &payload, where);
}

void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where) {
  matrix_operation(bf16_operation, d, a, b, where);
}

void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Where where) {
  matrix_operation(f16_operation, d, a, b, where);
}

void mma_m16n8k32_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     Where where) {
  matrix_operation(s8_operation, d, a, b, where);
}

void mma_m16n8k32_e4m3(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Where where) {
  matrix_operation(e4m3_operation, d, a, b, where);
}

}  // namespace indexpool::sim::simt
