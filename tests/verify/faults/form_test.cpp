#include "indexpool/verify/faults/form.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "indexpool/model/dtype.hpp"

namespace indexpool::verify::faults {
namespace {

struct Row {
  std::vector<int> codes;
  float scale;
};

bool holds(const char* mode, const Row& row) {
  std::vector<std::byte> codes, scale(4);
  for (const int code : row.codes) codes.push_back(static_cast<std::byte>(code));
  store_element(DType::f32, scale.data(), 0, static_cast<double>(row.scale));
  const PageShape shape{numeric_mode(mode), static_cast<std::int64_t>(codes.size()), 1};
  return form_holds(shape, codes, scale);
}

// 0x76 is 224, 0x75 is 208, 0x7e is 448, 0x7f NaN.
TEST(Form, PowerOfTwoScalesFillAtLeastHalfTheRange) {
  EXPECT_TRUE(holds("vllm_fp8", {{0x76, 0x01}, 0.25f}));
  EXPECT_TRUE(holds("vllm_fp8", {{0x01, 0xfe}, 0.25f}));
  EXPECT_TRUE(holds("vllm_fp8", {{0x00, 0x80}, 0x1p-22f}));  // at the floor anything goes
  EXPECT_FALSE(holds("vllm_fp8", {{0x75, 0x01}, 0.25f}));
  EXPECT_FALSE(holds("vllm_fp8", {{0x76, 0x7f}, 0.25f}));
  EXPECT_FALSE(holds("vllm_fp8", {{0x76, 0xff}, 0.25f}));
}

TEST(Form, ScalesThatTheRuleCannotGiveAreFaults) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float scale : {0.0f, -0.25f, 0.375f, 0x1p-23f, inf, -inf, std::nanf("")}) {
    EXPECT_FALSE(holds("vllm_fp8", {{0x7e}, scale})) << scale;
  }
  for (const float scale : {0.0f, -0.25f, 1e-7f, inf, std::nanf("")}) {
    EXPECT_FALSE(holds("sglang_fp8", {{0x7e}, scale})) << scale;
    EXPECT_FALSE(holds("int8", {{127}, scale})) << scale;
  }
}

TEST(Form, AmaxScalesFillTheRangeExactly) {
  EXPECT_TRUE(holds("sglang_fp8", {{0x7e, 0x10}, 0.3f}));
  EXPECT_FALSE(holds("sglang_fp8", {{0x7d, 0x10}, 0.3f}));
  EXPECT_TRUE(holds("sglang_fp8", {{0x00, 0x10}, 1e-4f / 448.0f}));
  EXPECT_TRUE(holds("int8", {{0x81, 3}, 0.3f}));
  EXPECT_FALSE(holds("int8", {{126, 3}, 0.3f}));
  EXPECT_FALSE(holds("int8", {{0x80, 127}, 0.3f}));  // -128 is never produced
}

TEST(Form, UnquantisedValuesAreFinite) {
  const PageShape shape{numeric_mode("bf16"), 2, 1};
  std::vector<std::byte> values(4);
  store_element(DType::bf16, values.data(), 0, 3);
  EXPECT_TRUE(form_holds(shape, values, {}));
  store_element(DType::bf16, values.data(), 1, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(form_holds(shape, values, {}));
}

}  // namespace
}  // namespace indexpool::verify::faults
