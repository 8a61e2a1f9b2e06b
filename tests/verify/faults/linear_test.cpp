#include "indexpool/verify/faults/linear.hpp"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/faults/subject.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

// What the real kernels made of a few pools.
struct Made {
  PageShape shape;
  StoredPage page;

  Made(const char* mode, const std::string& fill, std::uint64_t seed) : shape(page_shape(mode)) {
    const IndexerInputs inputs = draw_inputs(mode, fill, {4 * 20 + 2}, seed);
    page = pages_of(inputs, run_kernels(inputs, {50, 0, 2}, seed), shape).front();
  }
  double worst() const {
    const LinearLink link(shape);
    double worst = 0;
    for (std::size_t i = 0; i < page.checksums.size(); ++i) {
      const auto state = static_cast<std::int64_t>(i);
      worst =
          std::max(worst, link.utilisation(codes_of(shape, page.bytes, state),
                                           scale_of(shape, page.bytes, state), page.checksums[i]));
    }
    return worst;
  }
};

// No tolerance was chosen here: the bound is derived, and must hold for every mode and fill.
TEST(LinearLink, CorrectPoolsStayWithinTheDerivedBound) {
  for (const char* mode :
       {"vllm_fp8", "sglang_fp8", "int8", "bf16", "hf_f32", "hf_bf16", "hf_f16"}) {
    double worst = 0;
    for (const std::string& fill : fill_names()) {
      if (fill == "near_overflow") continue;  // stores NaN on purpose
      worst = std::max(worst, Made(mode, fill, 3).worst());
      EXPECT_LE(worst, 1) << mode << ", " << fill;
    }
    EXPECT_GT(worst, 0.02) << mode << ": the bound would let anything through";
  }
}

// With a rotation the sums are tied to 8 of 128 channels: 0 and the powers of two.
TEST(LinearLink, SeesTheChannelsThatTheRotatedSumsDependOn) {
  Made made("vllm_fp8", "normal", 9);
  const LinearLink link(made.shape);
  std::set<std::int64_t> seen;
  for (std::int64_t channel = 0; channel < head_dim; ++channel) {
    for (std::size_t i = 0; i < made.page.checksums.size(); ++i) {
      const auto state = static_cast<std::int64_t>(i);
      std::vector<std::byte> bytes = made.page.bytes;
      bytes[static_cast<std::size_t>(state * head_dim + channel)] ^= std::byte{0x80};
      if (!link.holds(codes_of(made.shape, bytes, state), scale_of(made.shape, bytes, state),
                      made.page.checksums[i])) {
        seen.insert(channel);
      }
    }
  }
  for (const std::int64_t channel : seen) {
    EXPECT_EQ(channel & (channel - 1), 0) << "channel " << channel << " has no part in the sums";
  }
  EXPECT_TRUE(seen.contains(0));
  EXPECT_GE(seen.size(), 3u);
}

// Without a rotation every channel takes part, and in f32 the bound is that of the sum alone.
TEST(LinearLink, SeesEveryChannelWhereNothingIsRotated) {
  Made made("hf_f32", "normal", 9);
  const LinearLink link(made.shape);
  for (std::int64_t channel = 0; channel < head_dim; ++channel) {
    std::vector<std::byte> bytes = made.page.bytes;
    bytes[static_cast<std::size_t>(4 * channel + 3)] ^= std::byte{0x80};  // the sign
    EXPECT_FALSE(link.holds(codes_of(made.shape, bytes, 0), {}, made.page.checksums[0]))
        << "channel " << channel;
  }
}

TEST(LinearLink, AScaleFourTimesTooLargeIsSeenUnlessTheSumsAreSmall) {
  Made made("vllm_fp8", "normal", 9);
  const LinearLink link(made.shape);
  int seen = 0;
  for (std::size_t i = 0; i < made.page.checksums.size(); ++i) {
    const auto state = static_cast<std::int64_t>(i);
    std::byte* at = made.page.bytes.data() + made.shape.scales_at() + 4 * state;
    store_element(DType::f32, at, 0, 4 * load_element(DType::f32, at, 0));
    seen += link.holds(codes_of(made.shape, made.page.bytes, state),
                       scale_of(made.shape, made.page.bytes, state), made.page.checksums[i])
                ? 0
                : 1;
  }
  EXPECT_GE(seen, 18);  // of 20
}

TEST(LinearLink, SumsAndValuesThatAreNoNumbersAreFaults) {
  Made made("vllm_fp8", "normal", 9);
  const LinearLink link(made.shape);
  const Bytes codes = codes_of(made.shape, made.page.bytes, 0);
  const Bytes scale = scale_of(made.shape, made.page.bytes, 0);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    kernels::PoolChecksum sums = made.page.checksums[0];
    sums.sum = bad;
    EXPECT_FALSE(link.holds(codes, scale, sums));
    sums = made.page.checksums[0];
    sums.weighted_sum = bad;
    EXPECT_FALSE(link.holds(codes, scale, sums));
  }
  made.page.bytes[5] = std::byte{0x7f};
  EXPECT_FALSE(link.holds(codes, scale, made.page.checksums[0]));
}

// All zero: the sums must be zero as well.
TEST(LinearLink, ZerosHaveSumsOfZero) {
  const PageShape shape = page_shape("vllm_fp8");
  const LinearLink link(shape);
  const std::vector<std::byte> codes(128);
  std::vector<std::byte> scale(4);
  store_element(DType::f32, scale.data(), 0, 0x1p-22);
  EXPECT_TRUE(link.holds(codes, scale, {0, 0, 0, 0}));
  EXPECT_FALSE(link.holds(codes, scale, {1e-3f, 0, 0, 0}));
}

RC_GTEST_PROP(LinearLink, RaisesNoFalseAlarm, (std::uint64_t seed)) {
  const auto fills = fill_names();
  const std::string fill = fills[seed % fills.size()];
  RC_PRE(fill != "near_overflow");
  RC_ASSERT(Made("vllm_fp8", fill, seed % 100'000).worst() <= 1);
}

}  // namespace
}  // namespace indexpool::verify::faults
