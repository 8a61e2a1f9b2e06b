#include "indexpool/model/tensor.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "expect_error.hpp"

namespace indexpool {
namespace {

TEST(Shape, CountsElementsAndRefusesWhatCannotBeCounted) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 37, 128}), 9472);
  EXPECT_EQ(element_count({std::int64_t{1} << 40, 0, std::int64_t{1} << 40}), 0);
  expect_parts(config_error_of([] { element_count({2, -3}); }), {"[2, -3]", "negative size -3"});
  expect_parts(config_error_of([] {
                 element_count({std::int64_t{1} << 40, std::int64_t{1} << 40});
               }),
               {"[1099511627776, 1099511627776]", "63 bits"});
  EXPECT_EQ(to_string(Shape{2, 37, 128}), "[2, 37, 128]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Tensor, StartsAsZerosOfItsShape) {
  const Tensor tensor(DType::bf16, {3, 5});
  EXPECT_EQ(tensor.size(), 15);
  EXPECT_EQ(tensor.bytes(), Bytes(30));
  EXPECT_EQ(tensor.dim(1), 5);
  for (std::int64_t i = 0; i < tensor.size(); ++i) EXPECT_EQ(tensor.at(i), 0);
}

TEST(Tensor, DefaultAndZeroSizedTensorsAreEmpty) {
  EXPECT_TRUE(Tensor().empty());
  const Tensor none(DType::f32, {0, 128});
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.raw().empty());
  EXPECT_TRUE(none.clone().empty());
  EXPECT_EQ(none.converted(DType::bf16).shape(), (Shape{0, 128}));
  EXPECT_FALSE(Tensor(DType::f32, {}).empty());  // a scalar
}

TEST(Tensor, WhoseBytesOverflowIsRefused) {
  expect_parts(config_error_of([] { Tensor(DType::f64, {std::int64_t{1} << 60}); }),
               {"bytes of a tensor", "63 bits"});
}

TEST(Tensor, CopiesShareStorageAndClonesDoNot) {
  Tensor tensor(DType::f32, {4});
  Tensor copy = tensor;
  Tensor clone = tensor.clone();
  tensor.set(2, 7);
  EXPECT_EQ(copy.at(2), 7);
  EXPECT_EQ(clone.at(2), 0);
  EXPECT_EQ(tensor.reshaped({2, 2}).at(2), 7);
  EXPECT_THROW(tensor.reshaped({3}), InternalError);
}

TEST(Tensor, ViewsNeedTheRightElementSize) {
  Tensor tensor(DType::bf16, {2});
  tensor.as<std::uint16_t>()[1] = 0x3f80;
  EXPECT_EQ(tensor.at(1), 1);
  EXPECT_THROW(tensor.as<float>(), InternalError);
}

TEST(Tensor, ConversionKeepsEveryI64) {
  Tensor tensor(DType::i64, {1});
  tensor.as<std::int64_t>()[0] = (std::int64_t{1} << 53) + 1;  // no double holds it
  EXPECT_EQ(tensor.converted(DType::i64).as<std::int64_t>()[0], (std::int64_t{1} << 53) + 1);
}

RC_GTEST_PROP(TensorLaws, ConversionRoundsEachElementOnce, (std::vector<double> values)) {
  Tensor exact(DType::f64, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) exact.as<double>()[i] = values[i];
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::i8}) {
    const Tensor rounded = exact.converted(dtype);
    RC_ASSERT(rounded.shape() == exact.shape());
    for (std::size_t i = 0; i < values.size(); ++i) {
      RC_ASSERT(rounded.at(static_cast<std::int64_t>(i)) == round_to(dtype, values[i]));
    }
  }
}

}  // namespace
}  // namespace indexpool
