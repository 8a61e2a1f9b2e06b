#include "indexpool/model/case_indexer.hpp"

#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/case_format.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t most_rows = std::int64_t{1} << 40;  // more is no file anybody has

// Columns of `sequences`.
enum : std::size_t { first_key_column, length_column, first_row_column, sequence_columns };

Tensor sequence_table(const std::vector<Sequence>& sequences) {
  Tensor table(DType::i64,
               {static_cast<std::int64_t>(sequences.size()), std::int64_t{sequence_columns}});
  auto cells = table.as<std::int64_t>();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    cells[s * sequence_columns + first_key_column] = sequences[s].first_key;
    cells[s * sequence_columns + length_column] = sequences[s].length;
    cells[s * sequence_columns + first_row_column] = sequences[s].first_row;
  }
  return table;
}

std::vector<Sequence> read_sequences(const TensorFile& file, std::int64_t batch,
                                     std::int64_t padded_length) {
  const Tensor& table =
      file.require("sequences", DType::i64, {batch, std::int64_t{sequence_columns}});
  const auto cells = table.as<std::int64_t>();
  std::vector<Sequence> sequences;
  std::int64_t rows = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(batch); ++s) {
    const auto row = cells.subspan(s * sequence_columns, sequence_columns);
    const Sequence sequence{row[first_key_column], row[length_column], row[first_row_column]};
    const bool inside = sequence.first_key >= 0 && sequence.length >= 0 &&
                        sequence.first_key <= padded_length &&
                        sequence.length <= padded_length - sequence.first_key;
    if (!inside || sequence.first_row != rows || rows > most_rows) {
      throw ConfigError(fmt::format(
          R"({}: tensor "sequences": row {}: found [{}, {}, {}], expected a first key and a length )"
          "within the padded length {} and the first row {}",
          file.path.string(), s, sequence.first_key, sequence.length, sequence.first_row,
          padded_length, rows));
    }
    rows += sequence.length;
    sequences.push_back(sequence);
  }
  if (rows == 0) {
    throw ConfigError(file.path.string() + R"(: tensor "sequences": zero tokens)");
  }
  return sequences;
}

struct Input {
  const char* name;
  Tensor IndexerInputs::*member;
};
constexpr Input inputs_of[] = {{"keys", &IndexerInputs::keys},
                               {"gate_scores", &IndexerInputs::gate_scores},
                               {"ape", &IndexerInputs::ape},
                               {"queries", &IndexerInputs::queries},
                               {"head_weights", &IndexerInputs::head_weights}};

const NumericMode& read_mode(const JsonObject& in) {
  try {
    return numeric_mode(in["mode"].text());
  } catch (const ConfigError& error) {
    in["mode"].fail(error.what());
  }
}

}  // namespace

std::vector<CaseTensor> indexer_case_tensors(const IndexerInputs& inputs) {
  const IndexerConfig& config = inputs.config;
  const DType storage = inputs.mode.storage;
  const std::int64_t heads = config.index_n_heads, dim = config.index_head_dim;
  const auto sequences = static_cast<std::int64_t>(inputs.sequences.size());
  std::int64_t rows = 0;
  for (const Sequence& sequence : inputs.sequences) rows += sequence.length;
  return {
      {"keys", storage, {rows, dim}, "keys of the tokens, after LayerNorm, sequences back to back"},
      {"gate_scores", storage, {rows, dim}, "one gate score per channel; -inf is a weight of 0"},
      {"ape", DType::f32, {config.index_kpool, dim}, "position bias, by place in the pool"},
      {"queries", storage, {rows, heads, dim}, "queries, before any rotation"},
      {"head_weights", DType::f32, {rows, heads}, "times logit_scale, the weight of a head"},
      {"sequences",
       DType::i64,
       {sequences, std::int64_t{sequence_columns}},
       "by sequence: padding before its first token, its tokens, its first row in keys"},
  };
}

const std::vector<std::string>& indexer_case_extras() {
  static const std::vector<std::string> names = {
      "block_table",        "token_page_table", "slot_mapping",
      "positions",          "schedule_parts",   "staged_keys",
      "staged_gate_scores", "staged_positions", "staged_slot_mapping"};
  return names;
}

TensorFile indexer_case_file(const Case& test_case) {
  const IndexerInputs& inputs = test_case.inputs;
  const IndexerConfig& config = inputs.config;
  const nlohmann::ordered_json description = {
      {"stage", "indexer"},
      {"source", test_case.source},
      {"batch", test_case.batch},
      {"padded_length", test_case.padded_length},
      {"prefill", test_case.prefill},
      {"heads", config.index_n_heads},
      {"head_dim", config.index_head_dim},
      {"kpool", config.index_kpool},
      {"topk", config.index_topk},
      {"always_select_tail", config.index_kpool_always_select_tail},
      {"mode", inputs.mode.name},
      {"logit_scale", inputs.logit_scale}};
  TensorFile file;
  file.metadata["case"] = description.dump();
  for (const Input& input : inputs_of) file.tensors[input.name] = inputs.*input.member;
  file.tensors["sequences"] = sequence_table(inputs.sequences);
  return file;
}

Case read_indexer_case(const TensorFile& file, const JsonValue& description) {
  const JsonObject in = description.object({"stage", "source", "batch", "padded_length", "prefill",
                                            "heads", "head_dim", "kpool", "topk",
                                            "always_select_tail", "mode", "logit_scale"});
  Case result;
  result.source = in["source"].text();
  result.batch = in["batch"].integer(1);
  result.padded_length = in["padded_length"].integer(1);
  result.prefill = in["prefill"].integer(0, result.padded_length);
  IndexerInputs& inputs = result.inputs;
  inputs.config = read_indexer(file, in);
  inputs.mode = read_mode(in);
  if (inputs.mode.hadamard &&
      !std::has_single_bit(static_cast<std::uint64_t>(inputs.config.index_head_dim))) {
    in["head_dim"].fail("expected a power of two: the keys pass a Hadamard transform");
  }
  inputs.logit_scale = in["logit_scale"].number();
  if (!std::isfinite(inputs.logit_scale)) in["logit_scale"].fail("expected a finite number");
  inputs.sequences = read_sequences(file, result.batch, result.padded_length);

  std::vector<std::string> known = indexer_case_extras();
  const std::vector<CaseTensor> tensors = indexer_case_tensors(inputs);
  for (const CaseTensor& tensor : tensors) known.push_back(tensor.name);
  refuse_unknown_tensors(file, known);
  for (const CaseTensor& tensor : tensors) file.require(tensor.name, tensor.dtype, tensor.shape);
  for (const Input& input : inputs_of) {
    inputs.*input.member = file.require(input.name);
    require_finite(file, input.name);
  }
  return result;
}

}  // namespace indexpool
