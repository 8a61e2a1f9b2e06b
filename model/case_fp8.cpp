// Cases that start behind the projections: one sequence, outputs of a serving engine's FP8 path.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/case_format.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t scale_bytes = 4;  // the f32 behind the codes of a cache row

const NumericMode& read_mode(const JsonValue& rule) {
  const std::string text = rule.text();
  if (text.starts_with("2^ceil")) return numeric_mode("vllm_fp8");
  const bool divides = text.find("amax") != std::string::npos && text.ends_with("/448");
  if (divides) return numeric_mode("sglang_fp8");
  rule.fail(fmt::format(
      "found \"{}\", expected \"2^ceil(log2(max(amax,1e-4)/448))\" or \"max(amax,1e-4)/448\"",
      text));
}

// These texts describe the only layouts there are; another word would mean other bytes.
void check_word(const JsonObject& in, std::string_view key, std::string_view word) {
  const auto value = in.find(key);
  if (value && !value->text().starts_with(word)) {
    value->fail(fmt::format(R"(found "{}", expected "{} ...")", value->text(), word));
  }
}

Tensor take_input(const TensorFile& file, const char* name, DType dtype, const Shape& shape) {
  Tensor tensor = file.require(name, dtype, shape).clone();
  require_finite(file, name);
  return tensor;
}

IndexerInputs read_inputs(const TensorFile& file, const JsonObject& in, std::int64_t tokens) {
  IndexerInputs inputs;
  inputs.config = read_indexer(file, in);
  inputs.mode = read_mode(in["scale_rule"]);
  inputs.sequences = {{0, tokens, 0}};
  const std::int64_t heads = inputs.config.index_n_heads;
  const std::int64_t head_dim = inputs.config.index_head_dim;
  if (!std::has_single_bit(static_cast<std::uint64_t>(head_dim))) {
    in["head_dim"].fail(fmt::format(
        "found {}, expected a power of two: the keys pass a Hadamard transform", head_dim));
  }
  const DType storage = inputs.mode.storage;
  inputs.keys = take_input(file, "k", storage, {tokens, head_dim});
  inputs.gate_scores = take_input(file, "gate_scores", storage, {tokens, head_dim});
  inputs.queries = take_input(file, "q", storage, {tokens, heads, head_dim});
  inputs.head_weights = take_input(file, "head_weights", DType::f32, {tokens, heads});
  inputs.ape = take_input(file, "ape", DType::f32, {inputs.config.index_kpool, head_dim});
  inputs.logit_scale = 1 / std::sqrt(static_cast<double>(head_dim) * static_cast<double>(heads));
  return inputs;
}

std::map<std::string, Tensor> read_expected(const TensorFile& file, const IndexerInputs& inputs) {
  const IndexerConfig& config = inputs.config;
  const std::int64_t heads = config.index_n_heads;
  const std::int64_t head_dim = config.index_head_dim;
  const std::int64_t tokens = inputs.rows();
  const std::int64_t pools = tokens / config.index_kpool;
  std::map<std::string, Tensor> expected;
  const auto take = [&](const char* name, const char* as, DType dtype, const Shape& shape) {
    if (file.contains(name)) expected[as] = file.require(name, dtype, shape);
  };
  take("pooled_bf16", "pooled", DType::bf16, {pools, head_dim});
  take("pool_rows", "pool_rows", DType::u8, {pools, head_dim + scale_bytes});
  take("q_codes", "q_codes", DType::u8, {tokens, heads, head_dim});
  take("q_scales", "q_scales", DType::f32, {tokens, heads});
  take("index_scores", "logits", DType::f32, {tokens, pools});
  take("topk_indices", "selection", DType::i32, {tokens, config.selection_width()});
  return expected;
}

}  // namespace

Case read_fp8_case(const TensorFile& file, const JsonValue& description) {
  const JsonObject in = description.object(
      {"stage", "tokens", "heads", "head_dim", "kpool", "topk", "scale_rule"},
      {"source", "seed", "fill", "hadamard", "score", "rows", "always_select_tail"});
  check_word(in, "hadamard", "sylvester");
  check_word(in, "rows", "interleaved");
  refuse_unknown_tensors(
      file, {"k", "gate_scores", "ape", "q", "head_weights", "pooled_bf16", "pool_rows", "q_codes",
             "q_scales", "index_scores", "topk_indices"});
  const JsonValue tokens = in["tokens"];
  if (tokens.integer(0) == 0) tokens.fail("zero tokens; expected at least one");
  Case result;
  if (const auto source = in.find("source")) result.source = source->text();
  result.inputs = read_inputs(file, in, tokens.integer());
  result.batch = 1;
  result.padded_length = result.prefill = tokens.integer();
  result.expected = read_expected(file, result.inputs);
  return result;
}

}  // namespace indexpool
