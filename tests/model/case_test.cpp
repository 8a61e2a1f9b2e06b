// Reading cases: what the tensors of a golden case become, any other shape of the format likewise.
#include "indexpool/model/case.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "case_files.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

const std::filesystem::path golden = std::filesystem::path(INDEXPOOL_TEST_DATA) / "golden";

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(golden)) {
    if (item.path().extension() == ".safetensors") files.push_back(item.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Case read(const TensorFile& file) {
  const TemporaryFolder folder;
  write_safetensors(folder / "made.safetensors", file);
  return read_case(folder / "made.safetensors");
}

Shape shape_or(const Case& read, const char* name, const Shape& absent) {
  const auto found = read.expected.find(name);
  return found == read.expected.end() ? absent : found->second.shape();
}

std::int64_t pools_of(const Case& read, bool longest) {
  std::int64_t sum = 0, most = 0;
  for (const Sequence& sequence : read.inputs.sequences) {
    sum += sequence.length / read.inputs.config.index_kpool;
    most = std::max(most, sequence.length / read.inputs.config.index_kpool);
  }
  return longest ? most : sum;
}

void expect_consistent(const Case& read) {
  const IndexerInputs& in = read.inputs;
  const auto& [heads, head_dim, topk, kpool, tail] = in.config;
  std::int64_t rows = 0;
  for (const Sequence& sequence : in.sequences) {
    EXPECT_EQ(sequence.first_row, rows);
    EXPECT_LE(sequence.first_key + sequence.length, read.padded_length);
    rows += sequence.length;
  }
  EXPECT_EQ(static_cast<std::int64_t>(in.sequences.size()), read.batch);
  EXPECT_EQ(in.rows(), rows);
  EXPECT_EQ(in.keys.shape(), (Shape{rows, head_dim}));
  EXPECT_EQ(in.gate_scores.shape(), (Shape{rows, head_dim}));
  EXPECT_EQ(in.queries.shape(), (Shape{rows, heads, head_dim}));
  EXPECT_EQ(in.head_weights.shape(), (Shape{rows, heads}));
  EXPECT_EQ(in.ape.shape(), (Shape{kpool, head_dim}));
  EXPECT_EQ(in.ape.dtype(), DType::f32);
  for (const Tensor* tensor : {&in.keys, &in.gate_scores, &in.queries}) {
    EXPECT_EQ(tensor->dtype(), in.mode.storage);
  }
  EXPECT_LE(read.prefill, read.padded_length);
  const Shape pooled{pools_of(read, false), head_dim};
  const Shape logits{rows, pools_of(read, true)};
  const Shape selection{rows, in.config.selection_width()};
  EXPECT_EQ(shape_or(read, "pooled", pooled), pooled);
  EXPECT_EQ(shape_or(read, "logits", logits), logits);
  EXPECT_EQ(shape_or(read, "selection", selection), selection);
}

TEST(GoldenCase, AllSeventeenAreReadWithConsistentShapes) {
  const auto files = golden_files();
  EXPECT_EQ(files.size(), 17U);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const Case read = read_case(path);
    EXPECT_EQ(read.name, path.stem());
    EXPECT_FALSE(read.source.empty());
    expect_consistent(read);
    const bool is_fp8 = read.name.starts_with("fp8");
    EXPECT_EQ(read.projections.present(), !is_fp8);
    EXPECT_EQ(read.inputs.mode.quantised(), is_fp8);
    EXPECT_EQ(read.expected.contains("selection"), true);
    EXPECT_EQ(read.expected.contains("pooled"), !read.name.starts_with("decode"));
  }
}

TEST(GoldenCase, KeepsTheNumbersOfTheFlashCase) {
  const Case read = read_case(golden / "glm53_bf16.safetensors");
  EXPECT_EQ(read.inputs.config, (IndexerConfig{32, 128, 256, 4, true}));
  EXPECT_EQ(read.inputs.mode.name, "hf_bf16");
  EXPECT_EQ(read.prefill, 387);
  EXPECT_EQ(read.projections.k_norm_eps, 1e-6);
  EXPECT_DOUBLE_EQ(read.inputs.logit_scale, std::pow(128, -0.5));
  EXPECT_EQ(read.projections.wq_b.shape(), (Shape{4096, 64}));
}

TEST(GoldenCase, AQuantisedCaseCarriesBothScaleFactors) {
  const Case read = read_case(golden / "fp8_glm53.safetensors");
  EXPECT_EQ(read.inputs.mode.name, "vllm_fp8");
  EXPECT_EQ(read.inputs.logit_scale, 0x1p-6);  // 128^-0.5 * 32^-0.5
  EXPECT_EQ(read.expected.at("pool_rows").shape(), (Shape{64, 132}));
  EXPECT_EQ(read.expected.at("q_codes").shape(), (Shape{259, 32, 128}));
}

TEST(GoldenCase, DecodeStepsFollowThePrefill) {
  const Case read = read_case(golden / "decode_f32.safetensors");
  EXPECT_EQ(read.prefill, 29);
  EXPECT_EQ(read.padded_length, 42);
  EXPECT_EQ(read.inputs.sequences[1].first_key, 3);
  EXPECT_EQ(read.inputs.rows(), 42 + 39);
}

// The rows of `packed` are the real tokens of `padded`, in order.
void expect_unpadded(const Case& read, const Tensor& packed, const Tensor& padded) {
  const std::int64_t width = packed.size() / packed.dim(0);
  for (std::size_t row = 0; row < read.inputs.sequences.size(); ++row) {
    const auto& [first_key, length, first_row] = read.inputs.sequences[row];
    for (std::int64_t i = 0; i < length * width; ++i) {
      const auto token = static_cast<std::int64_t>(row) * read.padded_length + first_key;
      ASSERT_EQ(packed.at(first_row * width + i), padded.at(token * width + i));
    }
  }
}

TEST(GoldenCase, PaddingOnEitherSideIsTakenOut) {
  for (const char* name : {"leftpad_batch_f32", "rightpad_batch_f32"}) {
    const auto path = golden / (std::string(name) + ".safetensors");
    const Case read = read_case(path);
    const TensorFile file = read_safetensors(path);
    expect_unpadded(read, read.inputs.keys, file.require("k"));
    expect_unpadded(read, read.inputs.queries, file.require("q"));
    expect_unpadded(read, read.inputs.head_weights, file.require("head_weights"));
    expect_unpadded(read, read.expected.at("logits"), file.require("index_scores"));
    expect_unpadded(read, read.expected.at("selection"), file.require("topk_indices"));
  }
  const auto& left = read_case(golden / "leftpad_batch_f32.safetensors").inputs.sequences;
  EXPECT_EQ(left[1].first_key, 5);
  EXPECT_EQ(left[2].first_key, 11);
  EXPECT_EQ(left[2].first_row, 64 + 59);
  const auto& right = read_case(golden / "rightpad_batch_f32.safetensors").inputs.sequences;
  EXPECT_EQ(right[1].length, 43);
}

TEST(GoldenCase, OnlyCompletePoolsAreExpectedBackToBack) {
  const auto path = golden / "leftpad_batch_f32.safetensors";
  const Case read = read_case(path);
  const TensorFile file = read_safetensors(path);
  const Tensor& padded = file.require("pool_keys");
  const Tensor& pooled = read.expected.at("pooled");
  ASSERT_EQ(pooled.dim(0), 16 + 14 + 13);
  const std::int64_t last_row = 16 + 14;  // first pool of the third sequence
  for (std::int64_t c = 0; c < 32; ++c) {
    EXPECT_EQ(pooled.at(last_row * 32 + c), padded.at(2 * 16 * 32 + c));
  }
}

TEST(Case, ARowThatIsAllPaddingHasNoTokens) {
  const Case read = indexpool::read(projection_file({.runs = {{0, 9}, {0, 0}, {2, 5}}}));
  expect_consistent(read);
  EXPECT_EQ(read.inputs.sequences[1].length, 0);
  EXPECT_EQ(read.inputs.sequences[2].first_row, 9);
}

TEST(Case, AContextShorterThanAPoolHasNoPools) {
  TensorFile file = projection_file({.runs = {{0, 3}}, .length = 3});
  file.tensors["index_scores"] = Tensor(DType::f32, {1, 3, 0});
  file.tensors["pool_keys"] = Tensor(DType::f32, {1, 0, 8});
  file.tensors["pool_valid"] = Tensor(DType::u8, {1, 0});
  const Case read = indexpool::read(file);
  expect_consistent(read);
  EXPECT_TRUE(read.expected.at("pooled").empty());
}

TEST(Case, NaNInPaddingIsNotUsed) {
  TensorFile file = projection_file({.runs = {{2, 5}}});
  for (const char* name : {"k", "q", "gate_scores", "head_weights", "hidden_states", "q_resid"}) {
    Tensor& tensor = file.tensors.at(name);
    tensor.set(0, std::nan(""));
    tensor.set(tensor.size() - 1, std::nan(""));
  }
  const Case read = indexpool::read(file);
  for (std::int64_t i = 0; i < read.inputs.keys.size(); ++i) {
    EXPECT_FALSE(std::isnan(read.inputs.keys.at(i)));
  }
}

TEST(Case, TheScaleRuleNamesTheMode) {
  const auto mode = [](const char* rule) {
    return indexpool::read(fp8_file(13, 3, 16, 4, 8, rule)).inputs.mode.name;
  };
  EXPECT_EQ(mode("2^ceil(log2(max(amax,1e-4)/448))"), "vllm_fp8");
  EXPECT_EQ(mode("max(amax,1e-4)/448"), "sglang_fp8");
  EXPECT_EQ(mode("amax/448"), "sglang_fp8");
}

RC_GTEST_PROP(CaseLaws, AnyShapeOfTheFormatIsRead, ()) {
  ProjectionShape shape;
  shape.length = *rc::gen::inRange<std::int64_t>(1, 40);
  shape.heads = *rc::gen::inRange<std::int64_t>(1, 5);
  shape.head_dim = *rc::gen::inRange<std::int64_t>(1, 20);
  shape.kpool = *rc::gen::inRange<std::int64_t>(1, 18);
  shape.topk = shape.kpool * *rc::gen::inRange<std::int64_t>(1, 6);
  shape.hidden = *rc::gen::inRange<std::int64_t>(1, 9);
  shape.q_lora = *rc::gen::inRange<std::int64_t>(1, 9);
  shape.dtype = *rc::gen::element(DType::f32, DType::bf16, DType::f16);
  shape.tail = *rc::gen::arbitrary<bool>();
  shape.runs = {{0, shape.length}};
  const int more = *rc::gen::inRange(0, 4);
  for (int row = 0; row < more; ++row) {
    const auto first = *rc::gen::inRange<std::int64_t>(0, shape.length);
    shape.runs.emplace_back(first, *rc::gen::inRange<std::int64_t>(0, shape.length - first + 1));
  }
  const TensorFile file = projection_file(shape);
  const Case read = indexpool::read(file);
  expect_consistent(read);
  expect_unpadded(read, read.inputs.gate_scores, file.require("gate_scores"));
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace indexpool
