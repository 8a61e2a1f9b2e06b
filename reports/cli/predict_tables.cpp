#include "indexpool/reports/cli/predict_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::Cell;
using reports::Column;
using reports::Table;

const std::vector<Column>& all_columns() {
  static const std::vector<Column> columns = {{"tokens", "tokens", true},
                                              {"phase", "phase"},
                                              {"kind", "kind"},
                                              {"what", "what"},
                                              {"kernel", "kernel"},
                                              {"layers", "layers", true},
                                              {"runs", "runs", true},
                                              {"bytes", "bytes", true},
                                              {"share_of_usable", "of usable", true},
                                              {"time_s", "time", true},
                                              {"time_low_s", "low", true},
                                              {"time_high_s", "high", true},
                                              {"share_of_step", "of step", true},
                                              {"tokens_per_s", "tokens/s", true},
                                              {"limited_by", "limited by"},
                                              {"formula", "how"},
                                              {"source", "source"},
                                              {"constants", "constants"}};
  return columns;
}
enum : std::size_t {
  tokens_column,
  phase_column,
  kind_column,
  what_column,
  kernel_column,
  layers_column,
  runs_column,
  bytes_column,
  share_column,
  time_column,
  low_column,
  high_column,
  time_share_column,
  rate_column,
  limit_column,
  formula_column,
  source_column,
  constants_column
};

Cell count_cell(std::int64_t count) {
  return count == 0 ? Cell() : Cell(std::to_string(count), count);
}
Cell exact_bytes(Bytes bytes) { return {reports::format_count(bytes.value), bytes.value}; }
Cell rounded_bytes(Bytes bytes) {
  return {reports::format_bytes(static_cast<double>(bytes.value)), bytes.value};
}
Cell time_cell(Seconds time) { return {reports::format_seconds(time.value), time.value}; }
Cell share_cell(Bytes part, Bytes whole) {
  const double share = static_cast<double>(part.value) / static_cast<double>(whole.value);
  return {reports::format_percent(share), share};
}

}  // namespace

void PredictTables::add_indexer(const ArchitectureConfig& model, std::int64_t tokens) {
  const auto add = [&](const char* what, Bytes bytes, const char* formula) {
    Row row;
    row.tokens = tokens;
    row.phase = "indexer";
    row.kind = "cache";
    row.what = what;
    row.layers = model.indexer_layers;
    row.bytes = exact_bytes(bytes);
    row.formula = formula;
    rows_.push_back(std::move(row));
  };
  add("pooled cache", indexer_cache_bytes(model, tokens), "whole pools, codes and scale");
  add("pooled, in whole pages", paged_cache_bytes(model, tokens), "pages of the kernels");
  add("one key per token", unpooled_cache_bytes(model, tokens), "the same keys without pooling");
}

void PredictTables::add_memory(const ModelMemory& memory, std::int64_t tokens, Bytes usable) {
  const StageMemory& stage = memory.on_one_gpu();
  const std::string phase =
      fmt::format("memory, GPU of stage {} of {}", memory.fullest + 1, memory.stages.size());
  const auto add = [&](const std::string& kind, const std::string& what, Bytes bytes) -> Row& {
    Row& row = rows_.emplace_back();
    row.tokens = tokens;
    row.phase = phase;
    row.kind = kind;
    row.what = what;
    row.bytes = exact_bytes(bytes);
    row.share = share_cell(bytes, usable);
    return row;
  };
  for (const MemoryTerm& term : stage.terms) {
    Row& row = add(to_string(term.kind), term.name, term.bytes);
    row.layers = term.layers;
    row.formula = term.formula;
    row.source = term.source;
  }
  add("total", "this GPU", stage.total).formula =
      fmt::format("layers {} to {}, {} terms", stage.first_layer,
                  stage.first_layer + stage.layers - 1, stage.terms.size());
  const bool fits = stage.total <= usable;
  add("room", fits ? "fits: left" : "does not fit: missing",
      fits ? usable - stage.total : stage.total - usable)
      .formula = fmt::format("usable {} B", usable.value);
  const std::int64_t gpus = memory.gpus_per_stage * static_cast<std::int64_t>(memory.stages.size());
  Row& all = add("total", "all GPUs", memory.all_gpus);
  all.share = {};
  all.formula = fmt::format("{} GPUs in {} stages", gpus, memory.stages.size());
}

void PredictTables::add_largest_context(std::int64_t tokens, Bytes usable) {
  Row& row = rows_.emplace_back();
  row.tokens = tokens;
  row.phase = "largest context";
  row.kind = "room";
  row.what = tokens == 0 ? "not even one token fits" : "tokens of each sequence that fit";
  row.formula = fmt::format("bisected, usable {} B", usable.value);
}

void PredictTables::add_phase(std::int64_t tokens, const std::string& phase,
                              const ArchitectureConfig& model,
                              const std::vector<OperationForecast>& operations) {
  const auto add = [&](const std::string& what, const std::string& kernel, std::int64_t layers,
                       const Prediction& prediction) {
    Row& row = rows_.emplace_back();
    row.tokens = tokens;
    row.phase = phase;
    row.kind = "time";
    row.what = what;
    row.kernel = kernel;
    row.layers = layers;
    row.bytes = rounded_bytes(prediction.hbm_bytes);
    row.time = time_cell(prediction.time);
    row.low = time_cell(prediction.low);
    row.high = time_cell(prediction.high);
    row.limit = Cell(prediction.bound_by);
  };
  bool complete = true;
  for (const OperationForecast& each : operations) {
    if (each.refusal.empty()) {
      add(each.op, each.kernel, 1, each.prediction);
      continue;
    }
    complete = false;
    Row& row = rows_.emplace_back();
    row.tokens = tokens;
    row.phase = phase;
    row.kind = "time";
    row.what = each.op;
    row.limit = Cell("no kernel: " + each.refusal);
  }
  if (complete) {
    add("all operations", "", model.indexer_layers, all_layers(operations, model.indexer_layers));
  }
}

std::vector<Cell> PredictTables::cells(const Row& row) const {
  return {{reports::format_tokens(row.tokens), row.tokens},
          Cell(row.phase),
          Cell(row.kind),
          Cell(row.what),
          Cell(row.kernel),
          count_cell(row.layers),
          count_cell(row.runs),
          row.bytes,
          row.share,
          row.time,
          row.low,
          row.high,
          row.time_share,
          row.rate,
          row.limit,
          Cell(row.formula),
          Cell(row.source),
          Cell(row.constants)};
}

Table PredictTables::table(const std::vector<std::size_t>& columns,
                           bool (*wanted)(const Row& row)) const {
  Table table;
  for (const std::size_t column : columns) table.columns.push_back(all_columns()[column]);
  for (const Row& row : rows_) {
    if (!wanted(row)) continue;
    const std::vector<Cell> whole = cells(row);
    std::vector<Cell> chosen;
    for (const std::size_t column : columns) chosen.push_back(whole[column]);
    table.rows.push_back(std::move(chosen));
  }
  return table;
}

std::string PredictTables::render(reports::Format format, bool explain, bool colour) const {
  if (format == reports::Format::json || format == reports::Format::csv) {
    std::vector<std::size_t> columns(all_columns().size());
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = i;
    return reports::render(table(columns, [](const Row&) { return true; }), format, colour);
  }
  std::vector<std::size_t> memory = {tokens_column, phase_column, kind_column, what_column,
                                     layers_column, bytes_column, share_column};
  if (explain) memory.insert(memory.end(), {formula_column, source_column});
  const auto is_operation = [](const Row& row) {
    return row.kind == "operation" || row.kind == "term";
  };
  const Table tables[] = {
      table(memory,
            [](const Row& row) {
              return row.kind != "time" && row.kind != "operation" && row.kind != "term";
            }),
      table({tokens_column, phase_column, what_column, kernel_column, layers_column, runs_column,
             bytes_column, time_column, low_column, high_column, time_share_column, rate_column,
             limit_column},
            [](const Row& row) { return row.kind == "time"; }),
      table({tokens_column, phase_column, what_column, runs_column, time_column, low_column,
             high_column, limit_column, formula_column, source_column, constants_column},
            is_operation)};
  std::string text;
  for (const Table& each : tables) {
    if (each.rows.empty()) continue;
    if (!text.empty()) text += "\n";
    text += reports::render(each, format, colour);
  }
  return text;
}

}  // namespace indexpool::cli
