// Bad cases: each is refused with the file and the place.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "indexpool/model/case.hpp"

#include "case_files.hpp"
#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

const std::filesystem::path golden = std::filesystem::path(INDEXPOOL_TEST_DATA) / "golden";

struct BadCase {
  const char* name;
  const char* base;  // golden case
  std::function<void(TensorFile&)> spoil;
  std::vector<std::string> says;
};

std::function<void(TensorFile&)> metadata(const std::string& from, const std::string& to) {
  return [from, to](TensorFile& file) { edit(file.metadata.at("case"), from, to); };
}

std::function<void(TensorFile&)> drop(const std::string& name) {
  return [name](TensorFile& file) { ASSERT_EQ(file.tensors.erase(name), 1U); };
}

std::function<void(TensorFile&)> put(const std::string& name, std::int64_t index, double value) {
  return [=](TensorFile& file) {
    file.tensors.at(name) = file.tensors.at(name).clone();  // a mapped file is not written
    file.tensors.at(name).set(index, value);
  };
}

std::function<void(TensorFile&)> replace(const std::string& name, DType dtype, const Shape& shape) {
  return [=](TensorFile& file) { file.tensors[name] = Tensor(dtype, shape); };
}

void expect_refused(const std::vector<BadCase>& rows) {
  const TemporaryFolder folder;
  for (const BadCase& row : rows) {
    SCOPED_TRACE(row.name);
    TensorFile file = read_safetensors(golden / (std::string(row.base) + ".safetensors"));
    row.spoil(file);
    write_safetensors(folder / "bad.safetensors", file);
    const std::string text = config_error_of([&] { read_case(folder / "bad.safetensors"); });
    expect_parts(text, {(folder / "bad.safetensors").string() + ": "});
    expect_parts(text, row.says);
  }
}

TEST(BadCase, DescriptionsAreReadStrictly) {
  const char* base = "glm53_small_f32";
  expect_refused({
      {"no description", base, [](TensorFile& file) { file.metadata.clear(); }, {R"(no "case")"}},
      {"not JSON", base, metadata("{", ""), {R"(metadata "case": line 1)", "not JSON"}},
      {"unknown key",
       base,
       metadata("\"kpool\"", "\"kpol\""),
       {R"(metadata "case": /kpol: unknown key "kpol")", R"(did you mean "kpool")"}},
      {"unknown key of the other kind", base, metadata("\"seed\"", "\"rows\""), {"/rows: unknown"}},
      {"missing key", base, metadata("\"heads\": 4, ", ""), {R"(the key "heads" is missing)"}},
      {"wrong type",
       base,
       metadata("\"heads\": 4", "\"heads\": \"4\""),
       {"/heads: found a string, expected an integer"}},
      {"key twice",
       base,
       metadata("\"heads\": 4", "\"heads\": 4, \"heads\": 4"),
       {"appears twice"}},
      {"dtype", base, metadata("float32", "float64"), {"/dtype", R"("float64")", "bfloat16"}},
      {"eps", base, metadata("1e-06", "0"), {"/k_norm_eps: expected a number above 0"}},
      {"unknown stage", "fp8_small", metadata("\"fp8\"", "\"fp4\""), {"/stage", "fp4"}},
      {"scale rule",
       "fp8_small",
       metadata("2^ceil(log2", "2^floor(log2"),
       {"/scale_rule", "2^floor", "expected"}},
      {"row layout", "fp8_small", metadata("interleaved", "planar"), {"/rows", "interleaved"}},
  });
}

TEST(BadCase, SizesMustMakeSense) {
  const char* base = "glm53_small_f32";
  expect_refused({
      {"kpool does not divide topk",
       base,
       metadata("\"kpool\": 4", "\"kpool\": 3"),
       {"index_kpool", "3", "16"}},
      {"kpool does not divide topk, fp8",
       "fp8_small",
       metadata("\"topk\": 16", "\"topk\": 18"),
       {"index_kpool", "4", "18"}},
      {"zero tokens",
       base,
       metadata("\"prefill\": 37", "\"prefill\": 0"),
       {"/prefill: zero tokens"}},
      {"zero tokens, fp8",
       "fp8_small",
       metadata("\"tokens\": 45", "\"tokens\": 0"),
       {"/tokens: zero tokens"}},
      {"nothing but padding",
       base,
       replace("attention_mask", DType::u8, {1, 37}),
       {"attention_mask", "zero tokens"}},
      {"zero heads", base, metadata("\"heads\": 4", "\"heads\": 0"), {"/heads", "from 1"}},
      {"zero kpool", base, metadata("\"kpool\": 4", "\"kpool\": 0"), {"/kpool", "from 1"}},
      {"negative batch", base, metadata("\"batch\": 1", "\"batch\": -1"), {"/batch", "-1"}},
      {"product that overflows",
       base,
       metadata("\"heads\": 4, \"head_dim\": 32",
                "\"heads\": 4294967296, \"head_dim\": 4294967296"),
       {"4294967296", "63 bits"}},
      {"product that overflows, fp8",
       "fp8_small",
       metadata("\"heads\": 4, \"head_dim\": 128",
                "\"heads\": 4611686018427387904, \"head_dim\": 128"),
       {"4611686018427387904", "63 bits"}},
      {"sum that overflows",
       base,
       metadata("\"prefill\": 37, \"decode\": 0",
                "\"prefill\": 9223372036854775807, \"decode\": 1"),
       {"prefill + decode", "63 bits"}},
      {"past int64", base, metadata("\"topk\": 16", "\"topk\": 18446744073709551616"), {"/topk"}},
      {"head_dim without a Hadamard matrix",
       "fp8_small",
       metadata("\"head_dim\": 128", "\"head_dim\": 96"),
       {"/head_dim", "power of two"}},
  });
}

TEST(BadCase, TensorsMustBeThereAsDescribed) {
  const char* base = "glm53_small_f32";
  expect_refused({
      {"missing keys", base, drop("k"), {R"(the tensor "k" is missing)"}},
      {"missing weights", base, drop("param.wk.weight"), {R"("param.wk.weight" is missing)"}},
      {"missing mask", base, drop("attention_mask"), {R"("attention_mask" is missing)"}},
      {"missing pool_valid", base, drop("pool_valid"), {R"("pool_valid" is missing)"}},
      {"missing, fp8", "fp8_small", drop("ape"), {R"(the tensor "ape" is missing)"}},
      {"misspelt",
       base,
       replace("index_scors", DType::f32, {1}),
       {R"(unknown tensor "index_scors")", R"(did you mean "index_scores")"}},
      {"dtype",
       base,
       replace("k", DType::f16, {1, 37, 32}),
       {R"(tensor "k": found f16 [1, 37, 32], expected f32 [1, 37, 32])"}},
      {"shape",
       base,
       replace("q", DType::f32, {1, 37, 32, 4}),
       {R"(tensor "q": found f32 [1, 37, 32, 4], expected f32 [1, 37, 4, 32])"}},
      {"rank",
       base,
       replace("k", DType::f32, {37, 32}),
       {R"(tensor "k")", "expected f32 [1, 37, 32]"}},
      {"description of another length",
       base,
       metadata("\"prefill\": 37", "\"prefill\": 36"),
       {"attention_mask", "[1, 37]", "expected u8 [1, 36]"}},
      {"expected shape",
       base,
       replace("index_scores", DType::f32, {1, 37, 8}),
       {R"(tensor "index_scores")", "[1, 37, 9]"}},
      {"selection without its tail",
       base,
       replace("topk_indices", DType::i32, {1, 37, 16}),
       {R"(tensor "topk_indices")", "[1, 37, 19]"}},
      {"cache rows",
       "fp8_small",
       replace("pool_rows", DType::u8, {11, 128}),
       {R"(tensor "pool_rows")", "[11, 132]"}},
      {"codes",
       "fp8_small",
       replace("q_codes", DType::e4m3, {45, 4, 128}),
       {R"(tensor "q_codes": found e4m3)", "expected u8"}},
  });
}

TEST(BadCase, NaNIsRefusedInEveryInput) {
  const char* base = "glm53_small_f32";
  const double nan = std::nan("");
  expect_refused({
      {"keys", base, put("k", 3 * 32 + 5, nan), {R"(tensor "k": found NaN at [0, 3, 5])"}},
      {"queries", base, put("q", 0, nan), {R"(tensor "q": found NaN at [0, 0, 0, 0])"}},
      {"gate scores", base, put("gate_scores", 31, nan), {"found NaN at [0, 0, 31]"}},
      {"head weights", base, put("head_weights", 4, nan), {"found NaN at [0, 1, 0]"}},
      {"hidden states", base, put("hidden_states", 64, nan), {"found NaN at [0, 1, 0]"}},
      {"q_resid", base, put("q_resid", 48 * 37 - 1, nan), {"found NaN at [0, 36, 47]"}},
      {"position bias", base, put("param.index_kpool_compress_ape", 33, nan), {"at [1, 1]"}},
      {"weights", base, put("param.wk.weight", 65, nan), {"param.wk.weight", "at [1, 1]"}},
      {"bf16", "glm53_bf16", put("k", 128, nan), {R"(tensor "k": found NaN at [0, 1, 0])"}},
      {"second sequence", "leftpad_batch_f32", put("k", (64 + 5) * 32, nan), {"at [1, 5, 0]"}},
      {"fp8 keys", "fp8_small", put("k", 129, nan), {R"(tensor "k": found NaN at [1, 1])"}},
      {"fp8 bias", "fp8_small", put("ape", 0, nan), {R"(tensor "ape": found NaN at [0, 0])"}},
  });
}

TEST(BadCase, InfinityIsRefusedInEveryInputButAsAClosedGate) {
  const char* base = "glm53_small_f32";
  const double inf = HUGE_VAL;
  expect_refused({
      {"keys", base, put("k", 3 * 32 + 5, -inf), {R"(tensor "k": found -inf at [0, 3, 5])"}},
      {"queries", base, put("q", 0, inf), {R"(tensor "q": found inf at [0, 0, 0, 0])"}},
      {"gate scores", base, put("gate_scores", 31, inf), {"found inf at [0, 0, 31]", "(or -inf)"}},
      {"head weights", base, put("head_weights", 4, -inf), {"found -inf at [0, 1, 0]"}},
      {"hidden states", base, put("hidden_states", 64, inf), {"found inf at [0, 1, 0]"}},
      {"weights", base, put("param.wk.weight", 65, inf), {"param.wk.weight", "at [1, 1]"}},
      {"fp8 bias", "fp8_small", put("ape", 0, -inf), {R"(tensor "ape": found -inf at [0, 0])"}},
  });
  const TemporaryFolder folder;
  TensorFile file = read_safetensors(golden / "fp8_small.safetensors");
  put("gate_scores", 129, -inf)(file);
  write_safetensors(folder / "closed.safetensors", file);
  EXPECT_EQ(read_case(folder / "closed.safetensors").inputs.gate_scores.at(129), -inf);
  // The other tokens of that pool and channel: no weight is left.
  const std::int64_t dim = file.tensors.at("gate_scores").dim(1);
  for (std::int64_t row = 0; row < 4; ++row) put("gate_scores", row * dim + 129 % dim, -inf)(file);
  write_safetensors(folder / "closed.safetensors", file);
  expect_parts(config_error_of([&] { read_case(folder / "closed.safetensors"); }),
               {"closed.safetensors", "sequence 0, pool 0", "all -inf"});
}

TEST(BadCase, MasksAreOneRunOfTokens) {
  expect_refused({
      {"hole",
       "leftpad_batch_f32",
       put("attention_mask", 64 + 20, 0),
       {R"(tensor "attention_mask": row 1, column 21: a real token follows the padding at column 20)"}},
      {"not a mask",
       "leftpad_batch_f32",
       put("attention_mask", 2, 2),
       {"row 0, column 2: found 2, expected 0 or 1"}},
      {"pools that disagree",
       "leftpad_batch_f32",
       put("pool_valid", 16 + 14, 1),
       {R"(tensor "pool_valid": found 1 at [1, 14], expected 0 from attention_mask)"}},
      {"tokens of a pool that disagree",
       "leftpad_batch_f32",
       put("pool_indices", 16 * 4, 4),
       {R"(tensor "pool_indices": found 4 at [1, 0, 0], expected 5)"}},
  });
}

TEST(BadCase, ATruncatedFileIsRefusedAtAnyLength) {
  const TemporaryFolder folder;
  const std::string bytes = read_bytes(golden / "glm53_small_f32.safetensors");
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{900},
                                   std::size_t{1920}, bytes.size() / 2, bytes.size() - 1}) {
    write_bytes(folder / "cut.safetensors", bytes.substr(0, length));
    const std::string text = config_error_of([&] { read_case(folder / "cut.safetensors"); });
    expect_parts(text, {"cut.safetensors: "});
  }
}

}  // namespace
}  // namespace indexpool
