// The tables of predict: what memory holds, and how long operations take.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/reports/cli/forecast.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {

// Rows of every kind under one set of columns, for machines; people see those of a kind under the
// columns that say something about it.
class PredictTables {
 public:
  // Cache of the indexer alone, all layers, one sequence on one GPU.
  void add_indexer(const ArchitectureConfig& model, std::int64_t tokens);
  // Waterfall of the fullest GPU, and whether it fits.
  void add_memory(const ModelMemory& memory, std::int64_t tokens, Bytes usable);
  void add_largest_context(std::int64_t tokens, Bytes usable);
  void add_phase(std::int64_t tokens, const std::string& phase, const ArchitectureConfig& model,
                 const std::vector<OperationForecast>& operations);

  std::string render(reports::Format format, bool explain, bool colour) const;

 private:
  struct Row {
    std::int64_t tokens = 0;
    std::string phase, kind, what, kernel, formula, source;
    std::int64_t layers = 0;
    reports::Cell bytes, share, time, low, high, limit;
  };
  std::vector<reports::Cell> cells(const Row& row) const;
  reports::Table table(std::vector<std::size_t> columns, bool timed, bool all) const;

  std::vector<Row> rows_;
};

}  // namespace indexpool::cli
