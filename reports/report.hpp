// Records to documents. Pure functions: nothing is run, the same records give the same bytes.
//
// A record's prediction is for its own problem unless Record::values says otherwise:
//   predicted_tokens       context length the prediction is for
//   predicted_load_bytes   bytes it must read and write there, each once (cold HBM)
//   predicted_store_bytes
//   predicted_l2_bytes     that pass between L2 and SMs, in sectors of 32 bytes
//   predicted_shared_bytes of passes over shared memory, 128 bytes each, shuffles among them
//   predicted_matrix_flop, predicted_f32_flop   multiply and add count as two
//   predicted_warp_instructions   issued, all warps together
//   indexer_layers         layers of the model that run the operation
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

// A curve for the memory and time plots, computed by the caller from the cost model.
struct Curve {
  std::string name;  // "pooled indexer cache"
  std::string plot;  // "memory" or "time"
  std::string unit;  // "bytes" or "seconds"
  std::vector<double> tokens, value, low, high;
};

// A table of another command, as a section of its own (see attachments.hpp).
struct Attachment {
  std::string id, heading, note;
  Table table;
};

struct ReportInput {
  std::string title;
  std::vector<Record> records;
  std::vector<Curve> curves;
  std::string command;  // the line that made it
  // Of the predictions: the ceilings of the roofline are its. Without: no roofline.
  std::optional<DeviceSpec> device = std::nullopt;
  std::vector<Attachment> attachments = {};
};

std::string html(const ReportInput& input);      // self-contained, offline, plots inlined
std::string markdown(const ReportInput& input);  // under 1 MiB
std::string junit(const ReportInput& input);
std::string pipeline_dot(const std::vector<Record>& records);
// Runs Graphviz's `dot`; empty when it is not installed.
std::string svg_from_dot(const std::string& dot);

// report.html, report.md, junit.xml, records.jsonl, pipeline.svg and hierarchy.svg (and what they
// are drawn from, .dot) in `folder`.
void write_report(const std::filesystem::path& folder, const ReportInput& input);

// The side-by-side table: operation, reference, kernel and executor, status, worst error over
// bound, decidable rows, counted bytes, predicted time, what limits it.
std::string side_by_side(const std::vector<Record>& records, Format format);

}  // namespace indexpool::reports
