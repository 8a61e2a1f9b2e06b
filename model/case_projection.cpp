// Cases that start at the hidden states: a batch of padded sequences, outputs of transformers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/model/case_format.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

struct Parameter {
  const char* name;
  Tensor ProjectionInputs::*member;
};
constexpr Parameter parameters[] = {
    {"param.wq_b.weight", &ProjectionInputs::wq_b},
    {"param.wk.weight", &ProjectionInputs::wk},
    {"param.k_norm.weight", &ProjectionInputs::k_norm_weight},
    {"param.k_norm.bias", &ProjectionInputs::k_norm_bias},
    {"param.weights_proj.weight", &ProjectionInputs::weights_proj},
    {"param.index_kpool_compress_gate", &ProjectionInputs::gate_weight},
};
constexpr const char* ape_name = "param.index_kpool_compress_ape";

const NumericMode& read_mode(const JsonValue& dtype) {
  const std::string name = dtype.text();
  if (name == "float32") return numeric_mode("hf_f32");
  if (name == "bfloat16") return numeric_mode("hf_bf16");
  if (name == "float16") return numeric_mode("hf_f16");
  dtype.fail(fmt::format(R"(found "{}", expected float32, bfloat16 or float16)", name));
}

struct Sizes {
  std::int64_t batch, length, hidden, q_lora;
};

// The real tokens of row `row` of the mask: one run of ones, or none.
Sequence read_row(const TensorFile& file, const Tensor& mask, std::int64_t row) {
  const std::int64_t length = mask.dim(1);
  const auto values = mask.as<std::uint8_t>().subspan(static_cast<std::size_t>(row * length),
                                                      static_cast<std::size_t>(length));
  for (std::int64_t column = 0; column < length; ++column) {
    const int value = values[static_cast<std::size_t>(column)];
    if (value <= 1) continue;
    throw ConfigError(fmt::format(R"({}: tensor "attention_mask": row {}, column {}: found {}, )"
                                  "expected 0 or 1",
                                  file.path.string(), row, column, value));
  }
  const auto first = std::find(values.begin(), values.end(), 1);
  const auto end = std::find(first, values.end(), 0);
  const auto hole = std::find(end, values.end(), 1);
  if (hole != values.end()) {
    throw ConfigError(fmt::format(
        R"({}: tensor "attention_mask": row {}, column {}: a real token follows the padding at )"
        "column {}; expected one run of real tokens in a row",
        file.path.string(), row, hole - values.begin(), end - values.begin()));
  }
  if (first == values.end()) return {};
  return {first - values.begin(), end - first, 0};
}

std::vector<Sequence> read_sequences(const TensorFile& file, const Sizes& sizes) {
  const Tensor& mask = file.require("attention_mask", DType::u8, {sizes.batch, sizes.length});
  std::vector<Sequence> sequences;
  std::int64_t rows = 0;
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    Sequence sequence = read_row(file, mask, row);
    sequence.first_row = rows;
    rows += sequence.length;
    sequences.push_back(sequence);
  }
  if (rows == 0) {
    throw ConfigError(file.path.string() +
                      R"(: tensor "attention_mask": zero tokens: every row is all padding)");
  }
  return sequences;
}

void read_inputs(const TensorFile& file, const Sizes& sizes, IndexerInputs& inputs) {
  const auto& [heads, head_dim, topk, kpool, tail] = inputs.config;
  const DType storage = inputs.mode.storage;
  const auto take = [&](const char* name, DType dtype, const Shape& shape) {
    const Tensor& padded = file.require(name, dtype, shape);
    require_finite(file, name, inputs.sequences);
    return real_tokens(padded, inputs.sequences);
  };
  const auto& [batch, length, hidden, q_lora] = sizes;
  inputs.keys = take("k", storage, {batch, length, head_dim});
  inputs.gate_scores = take("gate_scores", storage, {batch, length, head_dim});
  inputs.queries = take("q", storage, {batch, length, heads, head_dim});
  inputs.head_weights = take("head_weights", DType::f32, {batch, length, heads});
  inputs.ape = file.require(ape_name, storage, {kpool, head_dim}).converted(DType::f32);
  require_finite(file, ape_name);
  // The file's head weights already carry heads^-0.5.
  inputs.logit_scale = 1 / std::sqrt(static_cast<double>(head_dim));
}

ProjectionInputs read_projections(const TensorFile& file, const Sizes& sizes,
                                  const IndexerInputs& inputs, double k_norm_eps) {
  const std::int64_t heads = inputs.config.index_n_heads;
  const std::int64_t head_dim = inputs.config.index_head_dim;
  const DType storage = inputs.mode.storage;
  ProjectionInputs result;
  result.k_norm_eps = k_norm_eps;
  const Shape shapes[] = {{heads * head_dim, sizes.q_lora},
                          {head_dim, sizes.hidden},
                          {head_dim},
                          {head_dim},
                          {heads, sizes.hidden},
                          {head_dim, sizes.hidden}};
  static_assert(std::size(shapes) == std::size(parameters));
  for (std::size_t i = 0; i < std::size(parameters); ++i) {
    result.*parameters[i].member = file.require(parameters[i].name, storage, shapes[i]);
    require_finite(file, parameters[i].name);
  }
  result.hidden_states =
      file.require("hidden_states", storage, {sizes.batch, sizes.length, sizes.hidden});
  require_finite(file, "hidden_states", inputs.sequences);
  result.q_resid = file.require("q_resid", storage, {sizes.batch, sizes.length, sizes.q_lora});
  require_finite(file, "q_resid", inputs.sequences);
  return result;
}

// Pools of the longest sequence: the width of what the file says about pools.
std::int64_t pool_columns(const IndexerInputs& inputs) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : inputs.sequences) longest = std::max(longest, sequence.length);
  return longest / inputs.config.index_kpool;
}

// The file's own account of its pools must be the one that follows from the mask: complete pools,
// counted from the first real token.
void check_pools(const TensorFile& file, const Sizes& sizes, const IndexerInputs& inputs) {
  const std::int64_t kpool = inputs.config.index_kpool;
  const std::int64_t pools = pool_columns(inputs);
  const Tensor& valid = file.require("pool_valid", DType::u8, {sizes.batch, pools});
  const bool has_indices = file.contains("pool_indices");
  if (has_indices) file.require("pool_indices", DType::i32, {sizes.batch, pools, kpool});
  const auto fail = [&](const char* name, const Shape& at, double found, std::int64_t expected) {
    throw ConfigError(
        fmt::format(R"({}: tensor "{}": found {} at {}, expected {} from attention_mask)",
                    file.path.string(), name, found, to_string(at), expected));
  };
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    const Sequence& sequence = inputs.sequences[static_cast<std::size_t>(row)];
    for (std::int64_t pool = 0; pool < pools; ++pool) {
      const std::int64_t flat = row * pools + pool;
      const bool complete = pool < sequence.length / kpool;
      if (valid.at(flat) != (complete ? 1 : 0)) {
        fail("pool_valid", {row, pool}, valid.at(flat), complete ? 1 : 0);
      }
      for (std::int64_t j = 0; has_indices && complete && j < kpool; ++j) {
        const std::int64_t token = sequence.first_key + pool * kpool + j;
        const double found = file.require("pool_indices").at(flat * kpool + j);
        if (found != static_cast<double>(token)) fail("pool_indices", {row, pool, j}, found, token);
      }
    }
  }
}

// [B, P, D] to the complete pools of all sequences, back to back.
Tensor read_pooled(const TensorFile& file, const Sizes& sizes, const IndexerInputs& inputs) {
  check_pools(file, sizes, inputs);
  const std::int64_t columns = pool_columns(inputs);
  const Tensor& padded = file.require("pool_keys", inputs.mode.storage,
                                      {sizes.batch, columns, inputs.config.index_head_dim});
  std::vector<Sequence> pools;
  std::int64_t first = 0;
  for (const Sequence& sequence : inputs.sequences) {
    pools.push_back({0, sequence.length / inputs.config.index_kpool, first});
    first += pools.back().length;
  }
  return real_tokens(padded, pools);
}

std::map<std::string, Tensor> read_expected(const TensorFile& file, const Sizes& sizes,
                                            const IndexerInputs& inputs) {
  std::map<std::string, Tensor> expected{{"queries", inputs.queries},
                                         {"keys", inputs.keys},
                                         {"gate_scores", inputs.gate_scores},
                                         {"head_weights", inputs.head_weights}};
  // Decode cases carry no pools: theirs grow from step to step.
  if (file.contains("pool_keys")) expected["pooled"] = read_pooled(file, sizes, inputs);
  const auto take = [&](const char* name, const char* as, DType dtype, std::int64_t width) {
    if (!file.contains(name)) return;
    const Tensor& padded = file.require(name, dtype, {sizes.batch, sizes.length, width});
    expected[as] = real_tokens(padded, inputs.sequences);
  };
  take("index_scores", "logits", DType::f32, pool_columns(inputs));
  take("topk_indices", "selection", DType::i32, inputs.config.selection_width());
  return expected;
}

}  // namespace

Case read_projection_case(const TensorFile& file, const JsonValue& description) {
  const JsonObject in =
      description.object({"batch", "prefill", "decode", "heads", "head_dim", "kpool", "topk",
                          "hidden", "q_lora", "dtype", "always_select_tail", "k_norm_eps"},
                         {"source", "seed", "score"});
  refuse_unknown_tensors(
      file, {"hidden_states", "q_resid", "attention_mask", "q", "k", "gate_scores", "head_weights",
             "pool_keys", "pool_indices", "pool_valid", "index_scores", "topk_indices", ape_name,
             parameters[0].name, parameters[1].name, parameters[2].name, parameters[3].name,
             parameters[4].name, parameters[5].name});
  Case result;
  if (const auto source = in.find("source")) result.source = source->text();
  result.inputs.config = read_indexer(file, in);
  result.inputs.mode = read_mode(in["dtype"]);
  result.prefill = in["prefill"].integer(0);
  result.batch = in["batch"].integer(1);
  result.padded_length = checked_sum(result.prefill, in["decode"].integer(0),
                                     (in.where() + "prefill + decode").c_str());
  if (result.padded_length == 0) in["prefill"].fail("zero tokens: prefill and decode are both 0");
  const Sizes sizes{result.batch, result.padded_length, in["hidden"].integer(1),
                    in["q_lora"].integer(1)};
  const double k_norm_eps = in["k_norm_eps"].number();
  if (!(k_norm_eps > 0)) in["k_norm_eps"].fail("expected a number above 0");
  result.inputs.sequences = read_sequences(file, sizes);
  read_inputs(file, sizes, result.inputs);
  result.projections = read_projections(file, sizes, result.inputs, k_norm_eps);
  result.expected = read_expected(file, sizes, result.inputs);
  return result;
}

}  // namespace indexpool
