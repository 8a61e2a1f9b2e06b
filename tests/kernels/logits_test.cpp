// The logits kernels against plain loops, on random batches.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "logits_bench.hpp"

namespace indexpool::kernels {
namespace {

struct KernelMode {
  const char* kernel;
  const char* mode;
};
const std::vector<KernelMode> kernel_modes = {
    {"logits_mma", "bf16"},      {"logits_mma", "hf_bf16"},  {"logits_mma", "hf_f16"},
    {"logits_mma", "int8"},      {"logits_mma", "vllm_fp8"}, {"logits_mma", "sglang_fp8"},
    {"logits_e4m3", "vllm_fp8"}, {"logits_fma", "hf_f32"}};

Accumulation accumulation_of(const char* kernel, const Shape& shape) {
  LogitsArgs args;
  args.shape = shape;
  return find_kernel("simt", kernel)->accumulation(args);
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

struct Batch {
  KernelMode which;
  LogitsInputs inputs;
};

// Batches whose sizes straddle warps, tiles of pools, tiles of rows and pages.
Batch any_batch(LogitsFill fill) {
  Batch batch;
  batch.which = *rc::gen::elementOf(kernel_modes);
  const auto heads = *rc::gen::weightedOneOf<std::int64_t>(
      {{3, rc::gen::inRange<std::int64_t>(1, 33)}, {1, rc::gen::element<std::int64_t>(8, 32, 64)}});
  const auto kpool = *rc::gen::element<std::int64_t>(1, 3, 4, 16);
  const Shape shape =
      logits_shape(batch.which.mode, heads, *rc::gen::element<std::int64_t>(32, 64, 128), kpool);
  std::vector<LogitsRequest> requests;
  const auto count = *rc::gen::inRange<int>(1, 4);
  for (int i = 0; i < count; ++i) {
    const auto pools = *rc::gen::weightedOneOf<std::int64_t>(
        {{2, rc::gen::inRange<std::int64_t>(0, 70)},
         {1, rc::gen::element<std::int64_t>(31, 32, 63, 64, 65, 127, 128, 129, 200, 260)}});
    const auto rows = *rc::gen::weightedElement<std::int64_t>({{6, 1}, {4, 3}, {1, 33}});
    requests.push_back({pools * kpool + *rc::gen::inRange<std::int64_t>(0, kpool), rows});
  }
  batch.inputs =
      random_logits_inputs(shape, requests, *rc::gen::element<std::int64_t>(1, 8, 48, 64), fill,
                           *rc::gen::arbitrary<std::uint64_t>());
  return batch;
}

void check_untouched(const LogitsInputs& inputs, const LogitsRun& run) {
  for (std::int64_t row = 0; row < std::ssize(inputs.rows); ++row)
    for (std::int64_t pool = inputs.visible(row); pool < inputs.logits_stride; ++pool)
      RC_ASSERT(bits_of(run.logits[static_cast<std::size_t>(row * inputs.logits_stride + pool)]) ==
                untouched_logit);
}

sim::simt::Options in_order(sim::simt::LaneOrder order) {
  sim::simt::Options options;
  options.order = order;
  return options;
}

RC_GTEST_PROP(Logits, SmallIntegersAreScoredExactly, ()) {
  const Batch batch = any_batch(LogitsFill::integers);
  const LogitsRun run = run_logits(batch.which.kernel, batch.inputs);
  for (std::int64_t row = 0; row < std::ssize(batch.inputs.rows); ++row) {
    for (std::int64_t pool = 0; pool < batch.inputs.visible(row); ++pool) {
      const double expected = host_logit(batch.inputs, row, pool, 0).value;
      RC_ASSERT(
          static_cast<double>(
              run.logits[static_cast<std::size_t>(row * batch.inputs.logits_stride + pool)]) ==
          expected);
    }
  }
  check_untouched(batch.inputs, run);
}

RC_GTEST_PROP(Logits, RealNumbersStayWithinTheBoundOfTheirAccumulation, ()) {
  const Batch batch = any_batch(LogitsFill::normals);
  sim::simt::Options options;
  options.matrix = *rc::gen::element(sim::simt::MatrixModel::sm80, sim::simt::MatrixModel::sm90);
  const LogitsRun run = run_logits(batch.which.kernel, batch.inputs, options);
  const double per_product =
      dot_error(accumulation_of(batch.which.kernel, batch.inputs.shape), batch.inputs.head_dim());
  for (std::int64_t row = 0; row < std::ssize(batch.inputs.rows); ++row) {
    for (std::int64_t pool = 0; pool < batch.inputs.visible(row); ++pool) {
      const HostLogit expected = host_logit(batch.inputs, row, pool, per_product);
      const double found = static_cast<double>(
          run.logits[static_cast<std::size_t>(row * batch.inputs.logits_stride + pool)]);
      RC_ASSERT(std::abs(found - expected.value) <= expected.bound);
    }
  }
  check_untouched(batch.inputs, run);
}

RC_GTEST_PROP(Logits, LaneOrderChangesNoByte, ()) {
  const Batch batch = any_batch(LogitsFill::normals);
  const auto run = [&](sim::simt::LaneOrder order) {
    std::vector<std::uint32_t> bits;
    for (const float logit : run_logits(batch.which.kernel, batch.inputs, in_order(order)).logits)
      bits.push_back(bits_of(logit));
    return bits;
  };
  const auto forward = run(sim::simt::LaneOrder::forward);
  RC_ASSERT(forward == run(sim::simt::LaneOrder::reverse));
  RC_ASSERT(forward == run(sim::simt::LaneOrder::random));
}

RC_GTEST_PROP(Logits, DeclaredTrafficIsTheCountedTraffic, ()) {
  const Batch batch = any_batch(LogitsFill::integers);
  const LogitsRun run = run_logits(batch.which.kernel, batch.inputs);
  RC_LOG() << batch.which.kernel << " " << batch.which.mode << " H " << batch.inputs.heads()
           << " D " << batch.inputs.head_dim() << "\n";
  RC_ASSERT(run.declared.global_load.value == run.counted.global_load.value);
  RC_ASSERT(run.declared.global_store.value == run.counted.global_store.value);
  RC_ASSERT(run.declared.load_sectors == run.counted.load_sectors);
  RC_ASSERT(run.declared.store_sectors == run.counted.store_sectors);
  RC_ASSERT(run.declared.shared_load.value == run.counted.shared_load.value);
  RC_ASSERT(run.declared.shared_store.value == run.counted.shared_store.value);
  RC_ASSERT(run.declared.shared_wavefronts == run.counted.shared_wavefronts);
  RC_ASSERT(run.declared.matrix_ops == run.counted.matrix_ops);
  RC_ASSERT(run.declared.block_barriers == run.counted.block_barriers);
  RC_ASSERT(run.declared.shuffles == run.counted.shuffles);
  RC_ASSERT(run.declared == run.counted);
}

// Arguments of one query over 1000 pools; nothing of them is read.
LogitsArgs plain_args(const char* mode) {
  LogitsArgs args;
  args.shape = logits_shape(mode, 32, 128, 4);
  args.cache.page_stride = page_layout(args.shape, 64).page_bytes();
  args.block_table_width = 16;
  args.max_pools = 1000;
  args.logits_stride = 1024;
  args.row_count = args.tile_count = 1;
  return args;
}

std::string reason_of(const char* kernel, const LogitsArgs& args) {
  return find_kernel("simt", kernel)->unsupported(args).value_or("");
}

TEST(Logits, RefusalsSayWhatWasFoundAndExpected) {
  EXPECT_EQ(reason_of("logits_mma", plain_args("vllm_fp8")), "");
  LogitsArgs args = plain_args("vllm_fp8");
  args.shape.config.index_n_heads = 65;
  EXPECT_EQ(reason_of("logits_mma", args), "index_n_heads is 65; these kernels take 1 to 64");
  args = plain_args("vllm_fp8");
  args.block_table_width = 15;
  EXPECT_EQ(reason_of("logits_mma", args),
            "a block table of 15 pages of 64 pools does not reach 1000 pools");
  args = plain_args("vllm_fp8");
  args.logits_stride = 999;
  EXPECT_EQ(reason_of("logits_mma", args), "logits_stride is 999; rows see up to 1000 pools");
  args = plain_args("vllm_fp8");
  args.tile_count = std::int64_t{1} << 28;  // times 8 tiles of pools: one block too many
  EXPECT_NE(reason_of("logits_mma", args), "");
  args.tile_count -= 1;
  EXPECT_EQ(reason_of("logits_mma", args), "");
}

TEST(Logits, EveryModeHasItsKernelAndItsAccumulation) {
  const auto chosen = [](const char* mode) {
    const LogitsArgs args = plain_args(mode);
    const Kernel& kernel = find_kernel("simt", args);
    return std::pair(std::string(kernel.name), kernel.accumulation(args));
  };
  EXPECT_EQ(chosen("hf_f32"), std::pair(std::string("logits_fma"), Accumulation::f32_fma));
  EXPECT_EQ(chosen("bf16"), std::pair(std::string("logits_mma"), Accumulation::mma_f16_bf16));
  EXPECT_EQ(chosen("vllm_fp8"), std::pair(std::string("logits_mma"), Accumulation::mma_f16_bf16));
  EXPECT_EQ(chosen("int8"), std::pair(std::string("logits_mma"), Accumulation::mma_i8));
  EXPECT_EQ(find_kernel("simt", "logits_e4m3")->accumulation(plain_args("vllm_fp8")),
            Accumulation::mma_e4m3);
}

// NaN in a pool must not look like a pool that scored zero: topk would select it.
TEST(Logits, NanInAPoolReachesItsLogitAndNoOther) {
  for (const KernelMode& which : kernel_modes) {
    if (std::string_view(which.mode) == "int8") continue;  // has no NaN
    LogitsInputs inputs = random_logits_inputs(logits_shape(which.mode, 5, 64, 4), {{159, 1}}, 64,
                                               LogitsFill::normals, 1);
    inputs.pools[0][17 * 64 + 3] = std::numeric_limits<float>::quiet_NaN();
    const LogitsRun run = run_logits(which.kernel, inputs);
    for (std::size_t pool = 0; pool < 40; ++pool)
      EXPECT_EQ(std::isnan(run.logits[pool]), pool == 17) << which.kernel << " " << which.mode;
  }
}

}  // namespace
}  // namespace indexpool::kernels
