#include "indexpool/reports/cli/measured_score.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/spread.hpp"
#include "indexpool/verify/measure/predicted.hpp"

namespace indexpool::cli {
namespace {

namespace timing = verify::timing;

KernelShape shape_of(const timing::Point& point, const timing::Geometry& geometry,
                     const Work& work) {
  if (point.op != "logits" && point.op != "topk") {
    StreamShape stream;
    stream.read = work.unique_read;
    stream.written = work.unique_write;
    stream.blocks = work.blocks;
    stream.threads_per_block = work.threads_per_block;
    stream.blocks_per_sm = work.blocks_per_sm;
    return stream;
  }
  CacheShape cache;
  cache.sequences = point.batch;
  cache.rows_per_sequence = point.rows;
  cache.context = point.tokens - point.rows;  // before the rows
  cache.tokens_per_entry = geometry.indexer.index_kpool;
  cache.heads = geometry.indexer.index_n_heads;
  cache.head_dim = geometry.indexer.index_head_dim;
  const NumericMode& mode = numeric_mode(point.mode);
  cache.entry_bytes = cache.head_dim * info(mode.cache).bytes + (mode.quantised() ? 4 : 0);
  cache.topk = point.op == "topk" ? geometry.indexer.topk_pools() : 0;
  return cache;
}

Resource resource_of(const std::string& term) {
  if (term == "launch") return Resource::fixed;
  if (term == "hbm") return Resource::hbm;
  if (term == "l2") return Resource::l2;
  if (term == "latency" || term == "serial") return Resource::serial;
  return Resource::matrix;  // what SMs do: matrix, f32, shared, issue
}

KernelEstimate estimate_of(const Prediction& prediction) {
  KernelEstimate estimate;
  for (const CostTerm& term : prediction.terms) {
    double& part = estimate.parts[resource_of(term.name)];
    part = std::max(part, term.time.value);
  }
  estimate.parts.time = prediction.time.value;
  estimate.time = prediction.time;
  estimate.low = prediction.low;
  estimate.high = prediction.high;
  return estimate;
}

std::string part_of(const Measurement& measurement) {
  return measurement.clock == "graph_replay" ? measurement.cache + ", graph" : measurement.cache;
}

// Records of one point follow each other: its work is declared once for all of them.
class Works {
 public:
  const Work& of(const timing::StoredPoint& at) {
    if (!last_ || !(last_->point == at.point) || !(last_->geometry == at.geometry)) {
      work_ = timing::declared_work(at.point, at.geometry);
      last_ = at;
    }
    return work_;
  }

 private:
  std::optional<timing::StoredPoint> last_;
  Work work_;
};

std::string preamble(const Score& score) {
  return fmt::format(
      "{}: {} times{}\ndevice: {}{}\nNothing is fitted to these times: every row is held out.\n",
      score.table.file, score.table.rows.size(),
      score.table.skipped == 0
          ? ""
          : fmt::format("; {} records left out ({})", score.table.skipped, score.table.skipped_why),
      score.device,
      score.table.measured_on.empty() ? "" : ", measured on " + score.table.measured_on);
}

reports::Cell seconds(double s) { return {fmt::format("{:.4g} us", s * 1e6), s}; }
reports::Cell percent(double share) { return {fmt::format("{:.1f} %", share * 100), share}; }

reports::Table error_rows(const Score& score) {
  reports::Table table{{{"kernel", "kernel"},
                        {"part", "L2"},
                        {"regime", "bound by"},
                        {"rows", "points", true},
                        {"mean_error", "mean error", true},
                        {"median_error", "median", true},
                        {"p95_error", "95th", true},
                        {"bias", "bias", true},
                        {"coverage", "in 90 % interval", true}},
                       {}};
  for (const ErrorSummary& each : score.summaries) {
    table.rows.push_back({each.kernel, each.part, each.regime,
                          reports::Cell(fmt::format("{}", each.held_out), each.held_out),
                          percent(each.mean), percent(each.median), percent(each.p95),
                          percent(each.bias), percent(each.coverage)});
  }
  return table;
}

// The row of each kernel that is missed by most.
reports::Table worst_terms(const MeasuredScore& measured) {
  reports::Table table{{{"kernel", "kernel"},
                        {"shape", "shape"},
                        {"term", "term"},
                        {"time_s", "time", true},
                        {"formula", "formula"},
                        {"source", "source"}},
                       {}};
  const std::vector<ScoredRow>& rows = measured.score.rows;
  std::map<std::string, std::size_t> worst;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = worst.try_emplace(rows[i].row->kernel, i).first;
    if (std::abs(rows[i].error()) > std::abs(rows[at->second].error())) at->second = i;
  }
  for (const auto& [kernel, i] : worst) {
    const Prediction& prediction = measured.predictions[i];
    const std::string shape = rows[i].row->family;
    const auto add = [&, name = kernel](std::string term, reports::Cell time, std::string formula,
                                        std::string source) {
      table.rows.push_back({reports::Cell(name), reports::Cell(shape),
                            reports::Cell(std::move(term)), std::move(time),
                            reports::Cell(std::move(formula)), reports::Cell(std::move(source))});
    };
    add("measured", seconds(rows[i].row->time.value), rows[i].row->part,
        fmt::format("line {}", rows[i].row->line));
    add("predicted", seconds(prediction.time.value), "bound by " + prediction.bound_by,
        fmt::format("{:.4g} to {:.4g} us", prediction.low.value * 1e6,
                    prediction.high.value * 1e6));
    for (const CostTerm& term : prediction.terms) {
      add(term.name, term.time.value > 0 ? seconds(term.time.value) : reports::Cell(), term.formula,
          term.source);
    }
  }
  return table;
}

}  // namespace

bool holds_records(const std::string& path, const std::string& adapter) {
  if (!adapter.empty()) return adapter == records_adapter;
  std::ifstream file(path, std::ios::binary);
  std::string start(16, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.starts_with("{\"schema\":") || start.starts_with("{\"case_name\":");
}

std::string device_of(const std::vector<Record>& records, const std::string& file) {
  for (const Record& record : records)
    if (record.measurement && record.prediction) return record.prediction->device;
  throw ConfigError(file + ": found no measured record with a prediction; name a --device");
}

MeasuredScore score_records(const std::vector<Record>& records, const std::string& file,
                            const DeviceSpec& device) {
  MeasuredScore out;
  TimingTable& table = out.score.table;
  table.file = file;
  table.adapter = records_adapter;
  table.skipped_why = "not measured: no point of a grid, or wrong";
  out.score.device = device.name;
  Works works;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (!record.measurement || !timing::is_measured_point(record)) {
      ++table.skipped;
      continue;
    }
    const timing::StoredPoint at = timing::stored_point(record);
    const Work& work = works.of(at);
    table.measured_on = record.environment.device;
    table.rows.push_back({"cost model", record.implementation,
                          shape_of(at.point, at.geometry, work), record.measurement->median,
                          static_cast<std::int64_t>(i) + 1, timing::describe(at.point),
                          part_of(*record.measurement)});
    out.predictions.push_back(predict(work, device, timing::timed_as(*record.measurement)));
  }
  if (table.rows.empty()) throw ConfigError(file + ": found no measured point of a grid");
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    out.score.rows.push_back({&table.rows[i], estimate_of(out.predictions[i]), true});
  out.score.summaries = summarise(out.score.rows);
  return out;
}

std::string measured_text(const MeasuredScore& measured, reports::Format format, bool explain,
                          bool colour) {
  if (format == reports::Format::json || format == reports::Format::csv) {
    return render(explain ? worst_terms(measured) : error_rows(measured.score), format, false);
  }
  std::string text =
      preamble(measured.score) + "\n" + render(error_rows(measured.score), format, colour);
  if (explain) {
    text += "\nThe row of each kernel that is missed by most\n\n" +
            render(worst_terms(measured), format, colour);
  }
  return text;
}

reports::Table measured_rows(const MeasuredScore& measured) {
  reports::Table table{{{"line", "line", true},
                        {"kernel", "kernel"},
                        {"point", "point"},
                        {"part", "L2"},
                        {"bound_by", "bound by"},
                        {"measured_s", "measured", true},
                        {"predicted_s", "predicted", true},
                        {"low_s", "low", true},
                        {"high_s", "high", true},
                        {"error", "error", true}},
                       {}};
  std::vector<std::string> terms;
  for (const Prediction& prediction : measured.predictions)
    for (const CostTerm& term : prediction.terms)
      if (std::ranges::find(terms, term.name) == terms.end()) terms.push_back(term.name);
  for (const std::string& term : terms) table.columns.push_back({term + "_s", term, true});
  for (std::size_t i = 0; i < measured.score.rows.size(); ++i) {
    const ScoredRow& row = measured.score.rows[i];
    const Prediction& prediction = measured.predictions[i];
    std::vector<reports::Cell> cells{reports::Cell(fmt::format("{}", row.row->line), row.row->line),
                                     row.row->kernel,
                                     row.row->family,
                                     row.row->part,
                                     prediction.bound_by,
                                     seconds(row.row->time.value),
                                     seconds(prediction.time.value),
                                     seconds(prediction.low.value),
                                     seconds(prediction.high.value),
                                     percent(row.error())};
    for (const std::string& name : terms) {
      const auto found = std::ranges::find(prediction.terms, name, &CostTerm::name);
      cells.push_back(found == prediction.terms.end() ? reports::Cell()
                                                      : seconds(found->time.value));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace indexpool::cli
