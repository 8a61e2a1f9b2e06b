// Records to documents. Pure functions: nothing is run, the same records give the same bytes.
//
// A record's prediction is for its own problem unless Record::values says otherwise:
//   predicted_tokens       context length the prediction is for
//   predicted_load_bytes   bytes it must read and write there, each once (cold HBM)
//   predicted_store_bytes
//   indexer_layers         layers of the model that run the operation
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::reports {

// A curve for the memory and time plots, computed by the caller from the cost model.
struct Curve {
  std::string name;  // "pooled indexer cache"
  std::string plot;  // "memory" or "time"
  std::string unit;  // "bytes" or "seconds"
  std::vector<double> tokens, value, low, high;
};

struct ReportInput {
  std::string title;
  std::vector<Record> records;
  std::vector<Curve> curves;
  std::string command;  // the line that made it
};

std::string html(const ReportInput& input);      // self-contained, offline, plots inlined
std::string markdown(const ReportInput& input);  // under 1 MiB
std::string junit(const ReportInput& input);
std::string pipeline_dot(const std::vector<Record>& records);
// Runs Graphviz's `dot`; empty when it is not installed.
std::string svg_from_dot(const std::string& dot);

// report.html, report.md, junit.xml, records.jsonl, pipeline.svg (and pipeline.dot) in `folder`.
void write_report(const std::filesystem::path& folder, const ReportInput& input);

enum class Format { table, json, csv, md };
// The side-by-side table: operation, reference, kernel and executor, status, worst error over
// bound, decidable rows, counted bytes, predicted time, what limits it.
std::string side_by_side(const std::vector<Record>& records, Format format);

}  // namespace indexpool::reports
