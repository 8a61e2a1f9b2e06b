// A CSV of one's own. Columns are documented in generic_adapter.reads; the time's column names its
// unit.
#include <string_view>

#include <fmt/format.h>

#include "indexpool/model/latency/delimited.hpp"
#include "indexpool/model/latency/timing_adapters.hpp"

namespace indexpool {
namespace {

struct TimeColumn {
  std::string_view name;
  double seconds;
};
constexpr TimeColumn time_columns[] = {
    {"time_s", 1}, {"time_ms", 1e-3}, {"time_us", 1e-6}, {"time_ns", 1e-9}};

TimeColumn time_column(const HeadedTable& in) {
  for (const TimeColumn& each : time_columns) {
    if (in.has(each.name)) return each;
  }
  return time_columns[0];  // its absence is reported when it is read
}

TimedFrom timed_from(const HeadedTable& in, std::size_t row) {
  const std::string name = in.text(row, "timed_from");
  for (const TimedFrom each :
       {TimedFrom::stream, TimedFrom::graph, TimedFrom::kernel, TimedFrom::steady}) {
    if (to_string(each) == name) return each;
  }
  in.fail(row, "timed_from",
          fmt::format("found \"{}\", expected stream, graph, kernel or steady", name));
}

KernelShape stream_shape(const HeadedTable& in, std::size_t row) {
  StreamShape shape;
  shape.read = Bytes(in.count(row, "read_bytes", 0));
  shape.written = Bytes(in.count(row, "written_bytes", 0));
  if ((shape.read + shape.written).value == 0) in.fail(row, "read_bytes", "no bytes at all");
  if (in.has("timed_from")) shape.timed_from = timed_from(in, row);
  if (in.has("repeated")) shape.repeated = in.count(row, "repeated", 0) != 0;
  return shape;
}

KernelShape gemm_shape(const HeadedTable& in, std::size_t row) {
  const std::string dtype = in.text(row, "dtype");
  if (dtype != "bf16" && dtype != "f16") {
    in.fail(row, "dtype", fmt::format("found \"{}\", expected bf16 or f16", dtype));
  }
  return GemmShape{in.count(row, "m"), in.count(row, "n"), in.count(row, "k"), 2};
}

CacheShape cache_shape(const HeadedTable& in, std::size_t row) {
  CacheShape shape;
  shape.sequences = in.count(row, "sequences");
  shape.rows_per_sequence = in.count(row, "rows_per_sequence");
  shape.context = in.count(row, "context", 0);
  shape.tokens_per_entry = in.count(row, "tokens_per_entry");
  return shape;
}
KernelShape logits_shape(const HeadedTable& in, std::size_t row) {
  CacheShape shape = cache_shape(in, row);
  shape.heads = in.count(row, "heads");
  shape.head_dim = in.count(row, "head_dim");
  shape.entry_bytes = in.count(row, "entry_bytes");
  return shape;
}
KernelShape topk_shape(const HeadedTable& in, std::size_t row) {
  CacheShape shape = cache_shape(in, row);
  shape.topk = in.count(row, "topk");
  return shape;
}

struct Operation {
  std::string_view name, form;
  KernelShape (*shape)(const HeadedTable& in, std::size_t row);
};
constexpr Operation operations[] = {{"stream", "stream", stream_shape},
                                    {"host_timed", "host_timed", stream_shape},
                                    {"gemm", "tile_gemm", gemm_shape},
                                    {"paged_logits", "paged_logits", logits_shape},
                                    {"topk", "row_topk", topk_shape}};

const Operation& operation(const HeadedTable& in, std::size_t row) {
  const std::string name = in.text(row, "operation");
  for (const Operation& each : operations) {
    if (each.name == name) return each;
  }
  in.fail(
      row, "operation",
      fmt::format("found \"{}\", expected stream, host_timed, gemm, paged_logits or topk", name));
}

TimingTable read(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  const TimeColumn time = time_column(in);
  TimingTable table;
  for (std::size_t row = 0; row < in.rows(); ++row) {
    const Operation& what = operation(in, row);
    TimedRow out;
    out.form = what.form;
    out.kernel = in.has("kernel") ? in.text(row, "kernel") : std::string(what.name);
    out.shape = what.shape(in, row);
    out.time = Seconds(in.number(row, time.name) * time.seconds);
    if (out.time.value <= 0) in.fail(row, time.name, "expected a time above 0");
    out.line = in.line(row);
    out.family = shape_text(out.shape);
    table.rows.push_back(std::move(out));
  }
  return table;
}

bool recognises(std::string_view, std::string_view text) {
  return first_line(text).starts_with("operation,");
}

}  // namespace

const TimingAdapter generic_adapter = {
    "generic",
    "a CSV whose first column is `operation`: stream or host_timed (read_bytes, written_bytes), "
    "gemm (m, n, k, dtype), paged_logits (sequences, rows_per_sequence, context, tokens_per_entry, "
    "heads, head_dim, entry_bytes), topk (the first four, topk); and time_s, time_ms, time_us or "
    "time_ns; optional: kernel, and for stream timed_from (stream, graph, kernel, "
    "steady) and repeated (0 or 1)",
    recognises, read};

}  // namespace indexpool
