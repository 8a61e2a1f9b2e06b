// The Walsh-Hadamard rotation and its enclosure.
#include "indexpool/reference/rotate.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/reference/rounding.hpp"

#include "random_inputs.hpp"

namespace indexpool::reference {
namespace {

// Butterflies in binary32, in the given order of strides.
std::vector<float> butterflies(std::vector<float> x, const std::vector<std::size_t>& strides) {
  for (const std::size_t stride : strides) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if ((i & stride) != 0) continue;
      const float a = x[i], b = x[i + stride];
      x[i] = a + b;
      x[i + stride] = a - b;
    }
  }
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(x.size())));
  for (float& value : x) value *= scale;
  return x;
}

std::vector<std::size_t> strides_of(std::size_t dim) {
  std::vector<std::size_t> result;
  for (std::size_t stride = 1; stride < dim; stride *= 2) result.push_back(stride);
  return result;
}

Bounded random_rows(std::int64_t rows, std::int64_t dim, DType dtype, double spread,
                    std::mt19937_64& random) {
  Tensor tensor(dtype, {rows, dim});
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    tensor.set(i, normal(random) * std::exp2(spread * normal(random)));
  }
  return Bounded::exact(tensor);
}

RC_GTEST_PROP(RotateEnclosure, ContainsButterfliesInAnyOrder, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const auto dim = *rc::gen::element<std::int64_t>(1, 2, 4, 16, 64, 128);
  const auto storage = *rc::gen::element(DType::bf16, DType::f16, DType::f32);
  const double spread = *rc::gen::element(0.0, 2.0, 6.0);
  const auto rows = random_rows(4, dim, storage, storage == DType::f16 ? 0 : spread, random);
  const auto rotated = rotate<double>(rows, storage);
  auto strides = strides_of(static_cast<std::size_t>(dim));
  for (int order = 0; order < 4; ++order) {
    std::shuffle(strides.begin(), strides.end(), random);
    for (std::size_t r = 0; r < 4; ++r) {
      const auto first = r * static_cast<std::size_t>(dim);
      std::vector<float> x;
      for (std::int64_t c = 0; c < dim; ++c) {
        x.push_back(static_cast<float>(rows.value[first + static_cast<std::size_t>(c)]));
      }
      const auto y = butterflies(x, strides);
      for (std::size_t c = 0; c < y.size(); ++c) {
        const double answer = round_to(storage, static_cast<double>(y[c]));
        RC_ASSERT(answer >= rotated.low[first + c]);
        RC_ASSERT(answer <= rotated.high[first + c]);
      }
    }
  }
}

RC_GTEST_PROP(RotateEnclosure, ContainsWhatNeighbouringInputsGive, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  auto rows = random_rows(1, 32, DType::bf16, 1, random);
  auto other = rows;
  for (std::size_t i = 0; i < rows.value.size(); i += 5) {  // one step up, inside the interval
    rows.high[i] = round_to(DType::bf16, rows.value[i] * (1 + 0x1p-7) + 0x1p-130);
    other.value[i] = other.low[i] = other.high[i] = random() % 2 == 0 ? rows.low[i] : rows.high[i];
    if (rows.high[i] < rows.low[i]) std::swap(rows.low[i], rows.high[i]);
  }
  const auto wide = rotate<double>(rows, DType::bf16), narrow = rotate<double>(other, DType::bf16);
  for (std::size_t i = 0; i < wide.value.size(); ++i) {
    RC_ASSERT(wide.low[i] <= narrow.low[i]);
    RC_ASSERT(wide.high[i] >= narrow.high[i]);
  }
}

RC_GTEST_PROP(Rotate, TwiceIsTheIdentityWithinItsRoundings, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const std::int64_t dim = 128;
  const auto rows = random_rows(2, dim, DType::bf16, 1, random);
  const auto once = rotate<double>(rows, DType::bf16);
  const auto twice = rotate<double>(once, DType::bf16);
  const double u = info(DType::bf16).unit_roundoff;
  for (std::size_t i = 0; i < rows.value.size(); ++i) {
    double sum = 0;  // of the first rotation's roundings, as any output of the second sees them
    for (std::size_t c = 0; c < 128; ++c) sum += std::abs(once.value[i / 128 * 128 + c]);
    const double error = u * sum / std::sqrt(128.0) * 1.01;
    RC_ASSERT(std::abs(twice.value[i] - rows.value[i]) <=
              error + u * (std::abs(rows.value[i]) + error));
  }
}

TEST(Rotate, OfAUnitVectorIsARowOfSigns) {
  Tensor tensor(DType::bf16, {4, 4});
  for (std::int64_t i = 0; i < 4; ++i) tensor.set(i * 5, 2);
  const auto rotated = rotate<double>(Bounded::exact(tensor), DType::bf16);
  const std::vector<double> sylvester = {1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1};
  EXPECT_EQ(rotated.value, sylvester);
  EXPECT_EQ(rotated.low, sylvester);  // 4^-0.5 is a power of two: nothing rounds
  EXPECT_EQ(rotated.high, sylvester);
}

TEST(Rotate, RefusesALengthThatIsNoPowerOfTwo) {
  EXPECT_THROW(rotate<double>(Bounded(Shape{1, 96}), DType::bf16), ConfigError);
}

TEST(Rotate, LeavesQueriesAloneInModesWithoutIt) {
  const auto in = random_inputs(Draw{}, numeric_mode("hf_bf16"));
  EXPECT_EQ(rotate_queries(in).value, Bounded::exact(in.queries).value);
}

TEST(RotateEnclosure, IsASingleStoredNumberAlmostAlways) {
  std::mt19937_64 random(5);
  const auto rotated = rotate<double>(random_rows(500, 128, DType::bf16, 0, random), DType::bf16);
  std::int64_t wide = 0;
  for (std::size_t i = 0; i < rotated.value.size(); ++i) wide += rotated.low[i] != rotated.high[i];
  // gamma_2 either way against a spacing of 2^-8: 4 * 2^-16 where the sums are exact.
  EXPECT_LT(static_cast<double>(wide), 0.001 * static_cast<double>(rotated.size()));
}

TEST(RotateEnclosure, ExcludesAnotherOrderOfTheMatrix) {
  std::mt19937_64 random(6);
  const auto rows = random_rows(1, 128, DType::bf16, 0, random);
  const auto rotated = rotate<double>(rows, DType::bf16);
  std::int64_t outside = 0;
  for (std::size_t i = 0; i < 128; ++i) {
    std::size_t reversed = 0;  // bit-reversed rows
    for (int bit = 0; bit < 7; ++bit) reversed |= ((i >> bit) & 1U) << (6 - bit);
    outside +=
        rotated.value[reversed] < rotated.low[i] || rotated.value[reversed] > rotated.high[i];
  }
  EXPECT_GT(outside, 50);
}

}  // namespace
}  // namespace indexpool::reference
