// Fragments of a warp. Positions are written down here as the PTX ISA gives them, element by
// element, and not taken from the executor.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/dtype.hpp"
#include "indexpool/sim/simt/mma.hpp"

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

struct Place {
  int row, column;
};
// "mma.m16n8k16 with 16-bit floating point": a0..a7, b0..b3, c0..c3.
Place a16(int lane, int i) {
  const bool first_rows = i < 2 || (i >= 4 && i < 6);
  return {lane / 4 + (first_rows ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}
Place b16(int lane, int i) { return {lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4}; }
// "mma.m16n8k32 with 8-bit": a0..a15, b0..b7.
Place a8(int lane, int i) {
  const bool first_rows = i < 4 || (i >= 8 && i < 12);
  return {lane / 4 + (first_rows ? 0 : 8), lane % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}
Place b8(int lane, int i) { return {lane % 4 * 4 + (i & 3) + (i < 4 ? 0 : 16), lane / 4}; }
Place c32(int lane, int i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

template <class T, int Elements, int Words>
void pack(const std::vector<T>& matrix, int columns, Place (*place)(int, int),
          std::uint32_t (&out)[Words]) {
  T elements[Elements];
  for (int i = 0; i < Elements; ++i) {
    const Place p = place(lane_index(), i);
    elements[i] = matrix[static_cast<std::size_t>(p.row * columns + p.column)];
  }
  static_assert(sizeof(elements) == sizeof(out));
  std::memcpy(out, elements, sizeof(out));
}

// Runs `operation` on fragments of the matrices; returns d[16][8].
template <class T, class D, class Operation>
std::vector<D> warp_multiply(const std::vector<T>& a, const std::vector<T>& b, std::vector<D> d,
                             Operation operation) {
  constexpr int per_word = 4 / sizeof(T);
  constexpr int depth = 8 * per_word;
  Machine machine;
  machine.session.options.order = *rc::gen::elementOf(all_orders);
  machine.session.options.matrix = MatrixModel::sm90;
  machine.run(1, 32, 0, [&] {
    std::uint32_t fa[4], fb[2];
    pack<T, 4 * per_word>(a, depth, per_word == 2 ? a16 : a8, fa);
    pack<T, 2 * per_word>(b, 8, per_word == 2 ? b16 : b8, fb);
    D fd[4];
    const auto at = [&](int i) -> D& {
      const Place p = c32(lane_index(), i);
      return d[static_cast<std::size_t>(p.row * 8 + p.column)];
    };
    for (int i = 0; i < 4; ++i) fd[i] = at(i);
    operation(fd, fa, fb);
    for (int i = 0; i < 4; ++i) at(i) = fd[i];
  });
  return d;
}

std::vector<int> small_integers(std::size_t count) {
  return *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(-8, 9));
}

// Small integers multiply exactly in every format, so the layouts alone decide.
std::vector<int> integer_product(const std::vector<int>& a, const std::vector<int>& b,
                                 std::vector<int> d, int depth) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < depth; ++k) d[i * 8 + j] += a[i * depth + k] * b[k * 8 + j];
    }
  }
  return d;
}

template <class T, class Convert>
std::vector<T> converted(const std::vector<int>& values, Convert convert) {
  std::vector<T> out;
  for (const int value : values) out.push_back(static_cast<T>(convert(static_cast<float>(value))));
  return out;
}

template <class T, class D, class Convert, class Operation>
void check_layout(Convert convert, Operation operation) {
  const int depth = 32 / static_cast<int>(sizeof(T));
  const std::vector<int> a = small_integers(16 * depth), b = small_integers(depth * 8),
                         c = small_integers(128);
  const std::vector<D> d = warp_multiply(converted<T>(a, convert), converted<T>(b, convert),
                                         std::vector<D>(c.begin(), c.end()), operation);
  const std::vector<int> expected = integer_product(a, b, c, depth);
  RC_ASSERT(d == std::vector<D>(expected.begin(), expected.end()));
}

RC_GTEST_PROP(Matrix, Bf16FragmentsAreWhereThePtxIsaPutsThem, ()) {
  check_layout<std::uint16_t, float>(indexpool::bf16_from_float,
                                     [](auto& d, auto& a, auto& b) { mma_m16n8k16_bf16(d, a, b); });
}

RC_GTEST_PROP(Matrix, F16FragmentsAreWhereThePtxIsaPutsThem, ()) {
  check_layout<std::uint16_t, float>(indexpool::f16_from_float,
                                     [](auto& d, auto& a, auto& b) { mma_m16n8k16_f16(d, a, b); });
}

RC_GTEST_PROP(Matrix, E4m3FragmentsAreWhereThePtxIsaPutsThem, ()) {
  check_layout<std::uint8_t, float>(indexpool::e4m3_from_float,
                                    [](auto& d, auto& a, auto& b) { mma_m16n8k32_e4m3(d, a, b); });
}

RC_GTEST_PROP(Matrix, Int8FragmentsAreWhereThePtxIsaPutsThem, ()) {
  check_layout<std::int8_t, std::int32_t>(
      [](float value) { return static_cast<std::int8_t>(value); },
      [](auto& d, auto& a, auto& b) { mma_m16n8k32_s8(d, a, b); });
}

RC_GTEST_PROP(Matrix, OptionsChooseTheAccumulation, ()) {
  Machine machine;
  machine.session.options.matrix = *rc::gen::element(MatrixModel::sm80, MatrixModel::sm90);
  const auto codes = rc::gen::map(rc::gen::inRange(0x3800, 0x4800), [](int c) {
    return static_cast<std::uint16_t>(c | (c & 1) << 15);
  });
  const auto a = *rc::gen::container<std::vector<std::uint16_t>>(256, codes);
  const auto b = *rc::gen::container<std::vector<std::uint16_t>>(128, codes);
  std::vector<float> plain(128, 0), warp(128, 0);
  multiply_add_16x8x16(machine.session.options.matrix, HalfFormat::bf16, a.data(), b.data(),
                       plain.data());
  machine.run(1, 32, 0, [&] {
    std::uint32_t fa[4], fb[2];
    pack<std::uint16_t, 8>(a, 16, a16, fa);
    pack<std::uint16_t, 4>(b, 8, b16, fb);
    float d[4] = {};
    mma_m16n8k16_bf16(d, fa, fb);
    for (int i = 0; i < 4; ++i) {
      const Place p = c32(lane_index(), i);
      warp[static_cast<std::size_t>(p.row * 8 + p.column)] = d[i];
    }
  });
  RC_ASSERT(warp == plain);
}

TEST(Matrix, LoadMatrixGivesEachLaneTwoElementsOfARow) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    std::vector<std::vector<std::uint32_t>> got(32);
    machine.run(1, 32, 32 * 48, [&] {  // rows of 16 bytes, 48 apart
      const auto row = [](int r) {
        return reinterpret_cast<std::uint16_t*>(dynamic_shared() + 48 * r);
      };
      for (int i = 0; i < 8; ++i) {
        store_shared(row(lane_index()) + i, static_cast<std::uint16_t>(lane_index() * 8 + i));
      }
      sync_warp();
      std::uint32_t out[4];
      load_matrix_x4(out, row(lane_index()));
      got[lane_index()].assign(out, out + 4);
    });
    for (int lane = 0; lane < 32; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        const std::uint32_t first =
            static_cast<std::uint32_t>((matrix * 8 + lane / 4) * 8 + lane % 4 * 2);
        EXPECT_EQ(got[lane][matrix], first | (first + 1) << 16);
      }
    }
  }
}

TEST(Matrix, PartOfAWarpCannotMultiply) {
  Machine machine;
  unsigned line = 0;
  const Blame found = blame([&] {
    machine.run(1, 32, 0, [&] {
      if (lane_index() == 31) return;
      float d[4] = {};
      const std::uint32_t a[4] = {}, b[2] = {};
      line = __LINE__, mma_m16n8k16_bf16(d, a, b);
    });
  });
  EXPECT_EQ(found.kind, "bad_mask");
  EXPECT_EQ(found.line, line);
}

}  // namespace
}  // namespace indexpool::sim::simt
