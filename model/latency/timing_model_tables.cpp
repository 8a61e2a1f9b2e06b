// Tables of LLMCompass, NeuSight and Vidur: operations of models as a framework runs them, timed
// with events of the host.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/latency/delimited.hpp"
#include "indexpool/model/latency/timing_adapters.hpp"

namespace indexpool {
namespace {

StreamShape copy_of(std::int64_t elements, std::int64_t element_bytes, std::int64_t reads = 1) {
  StreamShape shape;
  shape.read = Bytes(reads * elements * element_bytes);
  shape.written = Bytes(elements * element_bytes);
  shape.repeated = true;
  return shape;
}

const char* size_part(const StreamShape& shape) {
  return large(shape) ? "over 80 MB" : "up to 80 MB";
}

// "M, N, K, 0.1900ms, 101.7124Tflops".
TimingTable read_llmcompass_matmul(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  TimingTable table;
  table.default_device = "a100-sxm4-80gb";
  for (const TextRow& row : split_commas(text)) {
    reader.width(row, 5, "M, N, K, time with \"ms\", rate with \"Tflops\"");
    const GemmShape shape{reader.count(row[0], "M"), reader.count(row[1], "N"),
                          reader.count(row[2], "K"), 2};
    const double seconds = reader.positive(row[3], "the time", "ms") * 1e-3;
    const double rate = reader.positive(row[4], "the rate", "Tflops") * 1e12;
    const double flop = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                        static_cast<double>(shape.k);
    if (flop / seconds > 1.1 * rate || flop / seconds < 0.9 * rate) {
      reader.fail(row[3], fmt::format("time and rate disagree: {:.4g} FLOP in {:.4g} s are {:.4g} "
                                      "TFLOP/s; is the time in another unit?",
                                      flop, seconds, flop / seconds / 1e12));
    }
    table.rows.push_back(
        {"tile_gemm", "matmul f16", shape, Seconds(seconds), row[0].line, shape_text(shape), ""});
  }
  return table;
}

// "M, N, Gelem/s", or "N, Gelem/s": softmax, layer norm, GELU in binary16, named by the file.
TimingTable read_llmcompass_rows(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  const auto slash = file.find_last_of('/');
  const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
  const std::string kernel = name.substr(0, name.find('_'));
  TimingTable table;
  table.default_device = "a100-sxm4-80gb";
  for (const TextRow& row : split_commas(text)) {
    if (row.size() != 2) reader.width(row, 3, "rows, columns, 1e9 elements a second");
    std::int64_t elements = reader.count(row[0], "the rows");
    if (row.size() == 3) elements *= reader.count(row[1], "the columns");
    const double rate = reader.positive(row.back(), "1e9 elements a second") * 1e9;
    const StreamShape shape = copy_of(elements, 2);
    table.rows.push_back({"host_timed", kernel, shape,
                          Seconds(static_cast<double>(elements) / rate), row[0].line,
                          shape_text(shape), size_part(shape)});
  }
  return table;
}

// Operands an element-wise operation of NeuSight's reads; 4-byte elements, B rows of H.
std::int64_t operands(const std::string& op) {
  return op == "add" || op == "mul" || op == "div" || op == "pow" ? 2 : 1;
}

TimingTable read_neusight(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  for (std::size_t row = 0; row < in.rows(); ++row) {
    const std::string op = in.text(row, "op"), device = in.text(row, "device");
    if (table.measured_on.empty()) table.measured_on = device;
    if (device != table.measured_on) in.fail(row, "device", "another device than in the first row");
    const std::int64_t elements = in.count(row, "B") * in.count(row, "H");
    const double milliseconds = in.number(row, "latency_ms");
    if (milliseconds <= 0) in.fail(row, "latency_ms", "expected a time above 0");
    const StreamShape shape = copy_of(elements, 4, operands(op));
    table.rows.push_back({"host_timed", op, shape, Seconds(milliseconds * 1e-3), in.line(row),
                          fmt::format("elements={}", elements), size_part(shape)});
  }
  table.default_device = device_file(table.measured_on);
  return table;
}

// Medians in ms, one line per model and number of tokens, binary16. The matrix products of the file
// are left out: their shapes are not in it.
TimingTable read_vidur(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  table.default_device = "a100-sxm4-80gb";
  for (std::size_t row = 0; row < in.rows(); ++row) {
    const std::int64_t tokens = in.count(row, "num_tokens"), hidden = in.count(row, "n_embd");
    const std::int64_t share = in.count(row, "num_tensor_parallel_workers");
    const std::int64_t expanded = in.count(row, "n_expanded_embd") / share;
    const auto add = [&](const char* kernel, StreamShape shape) {
      shape.timed_from = TimedFrom::kernel;
      const std::string column = fmt::format("time_stats.{}.median", kernel);
      if (in.cell(row, column).text.empty()) return;  // not measured
      const double milliseconds = in.number(row, column);
      if (milliseconds <= 0) in.fail(row, column, "expected a time above 0");
      table.rows.push_back({"stream", kernel, shape, Seconds(milliseconds * 1e-3), in.line(row),
                            fmt::format("tokens={}", tokens), size_part(shape)});
    };
    add("add", copy_of(tokens * hidden, 2, 2));
    add("input_layernorm", copy_of(tokens * hidden, 2));
    add("mlp_act", copy_of(tokens * expanded, 2, 2));
  }
  return table;
}

bool is_matmul(std::string_view, std::string_view text) {
  return first_line(text).find("Tflops") != std::string_view::npos;
}
bool is_rows(std::string_view file, std::string_view) {
  return file.starts_with("gelu_") || file.starts_with("softmax_") ||
         file.starts_with("layernorm_");
}
bool is_neusight(std::string_view, std::string_view text) {
  return first_line(text).starts_with("op,latency_ms,device,");
}
bool is_vidur(std::string_view, std::string_view text) { return text.starts_with("time_stats."); }

}  // namespace

const TimingAdapter llmcompass_matmul_adapter = {"llmcompass-matmul",
                                                 "lines \"M, N, K, time ms, rate Tflops\"",
                                                 is_matmul, read_llmcompass_matmul};
const TimingAdapter llmcompass_rows_adapter = {
    "llmcompass-rows",
    "lines \"rows, columns, Gelem/s\" or \"elements, Gelem/s\"; the file's name "
    "says which operation",
    is_rows, read_llmcompass_rows};
const TimingAdapter neusight_adapter = {"neusight", "a CSV with op, latency_ms, device, B, H",
                                        is_neusight, read_neusight};
const TimingAdapter vidur_adapter = {
    "vidur",
    "a CSV with time_stats.<operation>.median in ms, num_tokens, n_embd, n_expanded_embd, "
    "num_tensor_parallel_workers",
    is_vidur, read_vidur};

}  // namespace indexpool
