// quantize_query against the plain loops of host_math.cpp, byte for byte.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

struct Answer {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
};

Answer run(const Shape& shape, const std::vector<Head>& heads, std::int64_t rows,
           sim::simt::LaneOrder order = sim::simt::LaneOrder::forward) {
  sim::simt::Options options;
  options.order = order;
  const auto target = make_simt_target(options);
  std::vector<std::uint8_t> bytes;
  for (const Head& head : heads) {
    const auto stored = host_store(shape.mode.storage, head);
    bytes.insert(bytes.end(), stored.begin(), stored.end());
  }
  Answer answer;
  answer.codes.resize(heads.size() * static_cast<std::size_t>(shape.config.index_head_dim));
  answer.scales.resize(heads.size());
  const std::int64_t scale_bytes = std::ssize(answer.scales) * 4;
  std::byte* const queries = target->allocate("queries", std::ssize(bytes), std::byte{0x7f});
  std::byte* const codes = target->allocate("codes", std::ssize(answer.codes), std::byte{0x7f});
  std::byte* const scales = target->allocate("scales", scale_bytes, std::byte{0x7f});
  target->upload(queries, bytes.data(), std::ssize(bytes));
  QuantizeQueryArgs args;
  args.shape = shape;
  args.queries = queries;
  args.rows = rows;
  args.codes = reinterpret_cast<std::uint8_t*>(codes);
  args.scales = reinterpret_cast<float*>(scales);
  const Kernel& kernel = find_kernel("simt", args);
  kernel.launch(args, target->context());
  EXPECT_TRUE(kernel.work(args).traffic == target->context().simt->counted);
  EXPECT_EQ(target->check_guards(), "");
  target->download(answer.codes.data(), codes, std::ssize(answer.codes));
  target->download(answer.scales.data(), scales, scale_bytes);
  return answer;
}

Shape query_shape(const std::string& mode, std::int64_t head_dim, std::int64_t heads) {
  Shape shape = make_shape(mode, head_dim, 4);
  shape.config.index_n_heads = heads;
  return shape;
}

RC_GTEST_PROP(QuantizeQuery, EqualsThePlainLoopsByteForByte, ()) {
  const auto mode = *rc::gen::element<std::string>("vllm_fp8", "sglang_fp8", "int8");
  const Shape shape = query_shape(mode, *rc::gen::element(32, 64, 128), *rc::gen::inRange(1, 34));
  const auto rows = *rc::gen::inRange<std::int64_t>(0, 6);
  const std::int64_t heads = rows * shape.config.index_n_heads;
  const auto queries = random_rows(shape, heads, *rc::gen::arbitrary<std::uint64_t>()).keys;
  const Answer forward = run(shape, queries, rows);
  std::vector<std::uint8_t> codes;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const HostPool expected = host_quantise_query(shape.mode, queries[i]);
    codes.insert(codes.end(), expected.stored.begin(), expected.stored.end());
    RC_ASSERT(forward.scales[i] == expected.scale);
  }
  RC_ASSERT(forward.codes == codes);
  const Answer random = run(shape, queries, rows, sim::simt::LaneOrder::random);
  RC_ASSERT(random.codes == codes);
  RC_ASSERT(random.scales == forward.scales);
}

TEST(QuantizeQuery, ZeroHeadHasTheFloorScale) {
  const Shape shape = query_shape("vllm_fp8", 128, 1);
  const Answer answer = run(shape, {Head(128, 0.0f)}, 1);
  EXPECT_EQ(answer.scales[0], 0x1p-22f);  // 2^ceil(log2(1e-4 / 448))
  for (const std::uint8_t code : answer.codes) EXPECT_EQ(code, 0);
}

// A head whose rotation is c in every channel: amax = c. Around 448 = 1.75 * 2^8 the power of two
// steps: 448 * 2^k keeps 2^k, the next bf16 above doubles it.
TEST(QuantizeQuery, PowerOfTwoScaleStepsAt448) {
  const Shape shape = query_shape("vllm_fp8", 64, 1);
  const auto scale_of_amax = [&](float amax) {
    Head head(64, 0.0f);
    head[0] = amax * 8;  // rotation spreads channel 0 evenly, times 64^-0.5
    return run(shape, {head}, 1).scales[0];
  };
  EXPECT_EQ(scale_of_amax(448), 1.0f);
  EXPECT_EQ(scale_of_amax(450), 2.0f);
  EXPECT_EQ(scale_of_amax(446), 1.0f);
  EXPECT_EQ(scale_of_amax(224), 0.5f);
  EXPECT_EQ(scale_of_amax(226), 1.0f);
}

TEST(QuantizeQuery, UnquantisedModeIsRefusedWithAReason) {
  QuantizeQueryArgs args;
  args.shape = query_shape("hf_bf16", 128, 32);
  const Kernel* kernel = find_kernel("simt", "quantize_query");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->unsupported(args), "numeric mode \"hf_bf16\" keeps queries as they are");
}

}  // namespace
}  // namespace indexpool::kernels
