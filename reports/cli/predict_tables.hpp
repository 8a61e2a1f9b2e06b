// The tables of predict: what memory holds, and how long operations take.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/step/predict.hpp"
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

  // A whole step by groups of operations, and with `explain` operation by operation, term by term.
  void add_step(std::int64_t tokens, const std::string& phase, const step::StepForecast& forecast,
                const DeviceSpec& device, bool explain);

  std::string render(reports::Format format, bool explain, bool colour) const;

 private:
  struct Row {
    std::int64_t tokens = 0;
    std::string phase, kind, what, kernel, formula, source, constants;
    std::int64_t layers = 0, runs = 0;
    reports::Cell bytes, share, time, low, high, time_share, rate, limit;
  };
  Row& add_row(std::int64_t tokens, const std::string& phase, const char* kind);
  void add_operation(std::int64_t tokens, const std::string& phase,
                     const step::OperationForecast& operation, const DeviceSpec& device);
  void add_hidden(std::int64_t tokens, const std::string& phase,
                  const step::StepForecast& forecast);
  std::vector<reports::Cell> cells(const Row& row) const;
  reports::Table table(const std::vector<std::size_t>& columns,
                       bool (*wanted)(const Row& row)) const;

  std::vector<Row> rows_;
};

}  // namespace indexpool::cli
