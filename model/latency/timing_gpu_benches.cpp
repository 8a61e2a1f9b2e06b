// Tables as RRZE-HPC/gpu-benches prints them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/latency/delimited.hpp"
#include "indexpool/model/latency/timing_adapters.hpp"

namespace indexpool {
namespace {

// The files are named after the device: gpu-stream_a100_80.txt.
std::string device_of(std::string_view file) {
  if (file.find("a100_40") != std::string_view::npos) return "a100-sxm4-40gb";
  if (file.find("h200") != std::string_view::npos) return "h200-sxm";
  if (file.find("a100_80") != std::string_view::npos) return "a100-sxm4-80gb";
  return "";
}

constexpr double giga = 1e9;

// Bandwidths of six kernels, by how many threads run. 8-byte elements; a rate over many passes.
struct StreamKernel {
  std::string_view name;
  std::int64_t reads, writes;
};
constexpr StreamKernel stream_kernels[] = {{"init", 0, 1},  {"read", 1, 0}, {"scale", 1, 1},
                                           {"triad", 2, 1}, {"3pt", 1, 1},  {"5pt", 1, 1}};
constexpr std::int64_t stream_elements = 128 << 20;

TimingTable read_stream(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  TimingTable table;
  table.default_device = device_of(file);
  for (const TextRow& row : split_blanks(text)) {
    if (row[0].text.starts_with("block")) continue;  // the heading
    const auto bar = std::find_if(row.begin(), row.end(),
                                  [](const TextCell& cell) { return cell.text == "GB/s:"; });
    if (bar == row.end()) {
      reader.fail(row[0], "no \"GB/s:\" in the line, expected threads, occupancy and six rates");
    }
    const auto percent = std::find_if(
        row.begin(), bar, [](const TextCell& cell) { return cell.text.ends_with("%"); });
    if (percent == bar || percent - row.begin() < 2) {
      reader.fail(row[0], "no occupancy in percent before \"GB/s:\"");
    }
    if (row.end() - bar != 1 + static_cast<std::ptrdiff_t>(std::size(stream_kernels))) {
      reader.fail(row.back(), "expected six rates after \"GB/s:\"");
    }
    // "12.5%" or "12.5 %".
    const bool apart = percent->text == "%";
    const TextCell& share = apart ? *(percent - 1) : *percent;
    const double occupancy = reader.positive(share, "the occupancy", apart ? "" : "%");
    if (occupancy > 100) reader.fail(share, "an occupancy above 100 %");
    // Warps of 32 threads; 2048 threads fill an SM of every device in these tables.
    const auto threads = std::max<std::int64_t>(16, std::llround(occupancy / 100 * 2048 / 16) * 16);
    for (std::size_t i = 0; i < std::size(stream_kernels); ++i) {
      const StreamKernel& kernel = stream_kernels[i];
      const double rate = reader.positive(*(bar + 1 + static_cast<std::ptrdiff_t>(i)), "a rate");
      StreamShape shape;
      shape.read = Bytes(kernel.reads * 8 * stream_elements);
      shape.written = Bytes(kernel.writes * 8 * stream_elements);
      shape.blocks = std::int64_t{1} << 30;  // as many as fit
      shape.blocks_per_sm = 1;
      shape.threads_per_block = threads;
      shape.timed_from = TimedFrom::steady;
      const double bytes = static_cast<double>((shape.read + shape.written).value);
      table.rows.push_back({"stream", std::string(kernel.name), shape,
                            Seconds(bytes / (rate * giga)), row[0].line,
                            fmt::format("threads={}", threads), ""});
    }
  }
  return table;
}

// A scale kernel on a small array, again and again: 16 bytes an element. Of the launch
// configurations the last, the widest, is taken.
TimingTable read_small_kernels(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  const bool graph = file.find("graph") != std::string::npos;
  const bool barrier = file.find("gsync") != std::string::npos;
  TimingTable table;
  table.default_device = device_of(file);
  for (const TextRow& row : split_blanks(text)) {
    if (row.size() < 4) reader.fail(row.back(), "expected elements, a size in kB and rates");
    const std::int64_t elements = reader.count(row[0], "the number of elements");
    reader.number(row[1], "the size", "kB");
    const double rate = reader.positive(row.back(), "a rate");
    StreamShape shape;
    shape.read = shape.written = Bytes(8 * elements);
    shape.repeated = true;
    // "gsync": one launch, a grid barrier between passes.
    shape.timed_from = barrier ? TimedFrom::kernel : graph ? TimedFrom::graph : TimedFrom::stream;
    const char* kernel = barrier ? "scale, grid barrier" : graph ? "scale, graph" : "scale, stream";
    table.rows.push_back({"stream", kernel, shape,
                          Seconds(16 * static_cast<double>(elements) / (rate * giga)), row[0].line,
                          fmt::format("elements={}", elements), ""});
  }
  return table;
}

// Reads of one footprint again and again: "512 kB 1536 kB 12ms 0.0% 4315.9 GB/s ...".
TimingTable read_l2_cache(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  TimingTable table;
  table.default_device = device_of(file);
  for (const TextRow& row : split_blanks(text)) {
    if (row[0].text == "data") continue;  // the heading
    if (row.size() < 8 || row[3].text != "kB" || row[7].text != "GB/s") {
      reader.fail(row[0], "expected a block's share, the footprint in kB, time, spread and GB/s");
    }
    const double kilobytes = reader.positive(row[2], "the footprint");
    const double rate = reader.positive(row[6], "a rate");
    StreamShape shape;
    shape.read = Bytes(std::llround(kilobytes * 1024));
    shape.repeated = true;
    shape.timed_from = TimedFrom::steady;
    table.rows.push_back({"stream", "read by footprint", shape,
                          Seconds(static_cast<double>(shape.read.value) / (rate * giga)),
                          row[0].line, shape_text(shape), ""});
  }
  return table;
}

// Every SM reads the same bytes: "1 kB 103ms 1.0% 8425.6 GB/s ...", after a line of clocks.
TimingTable read_cache(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  TimingTable table;
  table.default_device = device_of(file);
  for (const TextRow& row : split_blanks(text)) {
    if (row[0].text == "clock:" || row[0].text == "data") continue;
    if (row.size() < 6 || row[1].text != "kB" || row[5].text != "GB/s") {
      reader.fail(row[0], "expected a footprint in kB, time, spread and GB/s");
    }
    StreamShape shape;
    shape.read = Bytes(std::llround(reader.positive(row[0], "the footprint") * 1024));
    shape.repeated = true;
    shape.timed_from = TimedFrom::steady;
    const double rate = reader.positive(row[4], "a rate") * giga;
    table.rows.push_back({"cached_read", "read by all SMs", shape,
                          Seconds(static_cast<double>(shape.read.value) / rate), row[0].line,
                          shape_text(shape), ""});
  }
  return table;
}

// Pointer chase: loads, clock in MHz, footprint in kB, ns, mean clocks of a load, ...
TimingTable read_latency(const std::string& file, std::string_view text) {
  const CellReader reader(file);
  TimingTable table;
  table.default_device = device_of(file);
  for (const TextRow& row : split_blanks(text)) {
    if (row[0].text == "clock:") continue;
    if (row.size() < 5) reader.fail(row.back(), "expected loads, MHz, kB, ns and clocks a load");
    const double hertz = reader.positive(row[1], "the clock in MHz") * 1e6;
    const ChaseShape shape{
        Bytes(std::llround(reader.positive(row[2], "the footprint in kB") * 1024))};
    const double clocks = reader.positive(row[4], "clocks a load");
    table.rows.push_back({"pointer_chase", "pointer chase", shape, Seconds(clocks / hertz),
                          row[0].line, shape_text(shape), ""});
  }
  return table;
}

bool is_cache(std::string_view file, std::string_view) {
  return file.find("gpu-cache") != std::string_view::npos;
}
bool is_latency(std::string_view file, std::string_view) {
  return file.find("gpu-latency") != std::string_view::npos;
}
bool is_stream(std::string_view file, std::string_view text) {
  return file.find("gpu-stream") != std::string_view::npos ||
         text.substr(0, 400).find("GB/s:") != std::string_view::npos;
}
bool is_small_kernels(std::string_view file, std::string_view) {
  return file.find("gpu-small-kernels") != std::string_view::npos;
}
bool is_l2_cache(std::string_view file, std::string_view) {
  return file.find("gpu-l2-cache") != std::string_view::npos;
}

}  // namespace

const TimingAdapter gpu_stream_adapter = {
    "gpu-benches-stream", "lines of threads, occupancy in % and the GB/s of six kernels", is_stream,
    read_stream};
const TimingAdapter gpu_small_kernels_adapter = {
    "gpu-benches-small-kernels", "lines of elements, size in kB and GB/s by launch configuration",
    is_small_kernels, read_small_kernels};
const TimingAdapter gpu_l2_cache_adapter = {
    "gpu-benches-l2-cache", "lines of a block's share, footprint in kB, time, spread and GB/s",
    is_l2_cache, read_l2_cache};

const TimingAdapter gpu_cache_adapter = {
    "gpu-benches-cache", "lines of a footprint in kB, time, spread and GB/s of all SMs", is_cache,
    read_cache};
const TimingAdapter gpu_latency_adapter = {
    "gpu-benches-latency", "lines of loads, MHz, footprint in kB, ns and clocks a load", is_latency,
    read_latency};

}  // namespace indexpool
