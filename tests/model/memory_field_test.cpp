// Out-of-memory reports of the field: the plan that failed is predicted to fail, the mended one to
// fit.
#include <gtest/gtest.h>

#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/serving_plan.hpp"

namespace indexpool {
namespace {

using namespace serving;

constexpr std::int64_t mebi = std::int64_t{1} << 20;
constexpr std::int64_t gibi = std::int64_t{1} << 30;

// Rows a launch scores at once under vLLM's budget, and what they take.
Bytes chunked(std::int64_t rows, std::int64_t columns, Bytes budget) {
  return logits_bytes(chunk_rows(rows, columns, budget).front().rows, columns);
}

TEST(FieldReports, LogitsOfAChunkOfRowsAtAMillionTokens) {
  // DeepGEMM, 8192 rows and 32 heads: 8.60 and 34.4 GB, at ten times the context 85.9 and 343.6.
  const auto gigabytes = [](std::int64_t keys) {
    return static_cast<double>(deepgemm_prefill_logits_bytes(8192, keys, 32).value) / 1e9;
  };
  EXPECT_NEAR(gigabytes(mebi / 4), 8.60, 0.005);
  EXPECT_NEAR(gigabytes(mebi), 34.4, 0.05);
  EXPECT_NEAR(gigabytes(10 * mebi / 4), 85.9, 0.05);
  EXPECT_NEAR(gigabytes(10 * mebi), 343.6, 0.05);
}

TEST(FieldReports, VllmBoundsRowsTimesColumnsNotColumnsAlone) {
  // vllm-project/vllm#36178: 8192 rows of 300,000 keys asked for 9.89 GiB (9.16 without padding).
  EXPECT_GT(logits_bytes(8192, logits_columns(300'000)), Bytes(9 * gibi));
  EXPECT_LE(chunked(8192, logits_columns(300'000), default_logits_budget), default_logits_budget);
}

TEST(FieldReports, SglangLogitsBeyondTwoGibibytes) {
  // sgl-project/sglang#37478: 16,384 rows of 229,376 keys abort every rank.
  EXPECT_GT(logits_bytes(16'384, 229'376), Bytes(2 * gibi));
  const Bytes limit(2 * gibi - 1);
  EXPECT_GT(chunk_rows(16'384, 229'376, limit).size(), 1u);
  EXPECT_LE(chunked(16'384, 229'376, limit), limit);
}

TEST(FieldReports, SglangLogitsThatNobodyBudgeted) {
  // sgl-project/sglang#35201: 1.42 GiB at 4096 rows of 372 K tokens in pools.
  const Bytes asked = logits_bytes(4096, logits_columns(372'000 / 4));
  EXPECT_EQ(asked, Bytes(std::int64_t{4096} * 93'184 * 4));
  EXPECT_NEAR(static_cast<double>(asked.value) / static_cast<double>(gibi), 1.42, 0.005);
  EXPECT_LE(chunked(4096, logits_columns(93'000), Bytes(gibi)), Bytes(gibi));
}

TEST(FieldReports, GatherWorkspaceInTokensWhereStatesArePools) {
  // vllm-project/vllm#55221: 5.28 GB at a million tokens, a fourth of it in pools.
  EXPECT_EQ(gather_workspace_bytes(gather_states(1'000'000, 1), Bytes(132)), Bytes(5'280'000'000));
  EXPECT_EQ(gather_workspace_bytes(gather_states(1'000'000, 4), Bytes(132)), Bytes(1'320'000'000));
}

TEST(FieldReports, DecodeLogitsAsWideAsTokensWhereStatesArePools) {
  // vllm-project/vllm#57701: 4 GiB where 1 GiB is read; 3072 MiB wasted.
  const Bytes tokens = logits_bytes(1024, decode_logits_columns(mebi, 1));
  const Bytes pools = logits_bytes(1024, decode_logits_columns(mebi, 4));
  EXPECT_EQ(tokens, Bytes(4 * gibi));
  EXPECT_EQ(tokens - pools, Bytes(3072 * mebi));
}

TEST(FieldReports, DecodeRowsThatNoStepCanHave) {
  // vllm-project/vllm#55132: 32 GiB for 8192 rows, when 64 sequences with 3 drafts have 256.
  EXPECT_EQ(logits_bytes(8192, mebi), Bytes(32 * gibi));
  EXPECT_EQ(logits_bytes(decode_rows(64, 3), mebi), Bytes(gibi));
}

TEST(FieldReports, GrowingLogitsFillUnifiedMemory) {
  // vllm-project/vllm#58068: each chunk of a 200 K prompt asks for a size of its own.
  const auto growing = prompt_logits(200'000, 4608, 4, LogitsWidth::growing);
  const auto fixed = prompt_logits(200'000, 4608, 4, LogitsWidth::fixed);
  const AllocatorUse kept = simulate_caching_allocator(growing);
  EXPECT_GT(kept.distinct_sizes, 30);
  EXPECT_GT(kept.reserved, kept.largest * 10);
  const AllocatorUse one = simulate_caching_allocator(fixed);
  EXPECT_EQ(one.reserved, one.largest);
  EXPECT_GT(kept.reserved, one.reserved * 10);
}

TEST(FieldReports, ACacheSizedWithoutItsIndexer) {
  // sgl-project/sglang#11309: 54.52 GB were announced, 65.49 GB taken.
  const TokenBytes bytes = token_bytes(load_model("deepseek-v3.2"), {});
  EXPECT_NEAR(bytes.all / (bytes.all - bytes.indexer), 65.49 / 54.52, 0.0003);
}

// The whole plan: what a device has decides, the work buffer tips it over.
TEST(FieldReports, AMillionTokensOnEightH200FitOnlyWithChunkedLogits) {
  const Architecture glm = load_model("glm-5.3-flash");
  const Bytes usable(static_cast<std::int64_t>(0.9 * 141e9));
  MemoryRequest request;
  request.tokens = mebi;
  request.tensor_parallel = 8;
  request.pooled = false;
  request.logits_budget = Bytes(std::int64_t{1} << 40);  // none
  EXPECT_GT(model_memory(glm, request).on_one_gpu().total, usable);
  request.logits_budget.reset();
  EXPECT_LE(model_memory(glm, request).on_one_gpu().total, usable);
}

// The first row whose f32 logits do not lie below 2^31, in elements and in bytes.
std::int64_t first_row_that_wraps(std::int64_t stride) {
  return (std::int64_t{1} << 31) / stride;  // it starts below and ends beyond, or starts beyond
}

TEST(FieldReports, OffsetsOf31BitsEndInsideTheseRows) {
  const std::int64_t pooled = mebi / 4 + 256, ten = 10 * mebi / 4 + 256;
  EXPECT_EQ(first_row_that_wraps(pooled), 8184);
  EXPECT_EQ(first_row_that_wraps(4 * pooled), 2046);
  EXPECT_EQ(first_row_that_wraps(ten), 819);
  EXPECT_EQ(first_row_that_wraps(4 * ten), 204);
  // A row's start leaves 31 bits one row later; page starts are published that way.
  EXPECT_EQ(first_index_beyond_int32(pooled), 8185);
  EXPECT_EQ(first_index_beyond_int32(8448), 254'201);
  EXPECT_EQ(first_index_beyond_int32(1'077'120), 1994);  // local-inference-lab/b12x#45
  EXPECT_EQ(first_index_beyond_int32(mebi), 2048);       // req_to_token
}

}  // namespace
}  // namespace indexpool
