#include "indexpool/model/latency/timing_table.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/timing_adapters.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

std::string text_of(const std::string& path) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem)) {
    throw ConfigError(path + ": a folder, expected a table of times");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(path + ": can't be read; does it exist?");
  return {std::istreambuf_iterator<char>(in), {}};
}

const TimingAdapter& chosen(const std::string& path, std::string_view text,
                            const std::string& name) {
  const std::string file = std::filesystem::path(path).filename().string();
  for (const TimingAdapter& adapter : timing_adapters()) {
    if (name.empty() ? adapter.recognises(file, text) : adapter.name == name) return adapter;
  }
  const std::vector<std::string> known = timing_adapter_names();
  if (name.empty()) {
    throw ConfigError(
        fmt::format("{}: line 1 is that of no known format; name one with --adapter "
                    "(known: {})",
                    path, fmt::join(known, ", ")));
  }
  throw ConfigError(fmt::format("unknown adapter \"{}\"{} (known: {})", name,
                                did_you_mean(name, known), fmt::join(known, ", ")));
}

struct Amount {
  double bytes = 0, flop = 0;
};
Amount amount_of(const KernelShape& shape) {
  if (const auto* stream = std::get_if<StreamShape>(&shape)) {
    return {static_cast<double>((stream->read + stream->written).value), 0};
  }
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    const double m = static_cast<double>(gemm->m), n = static_cast<double>(gemm->n),
                 k = static_cast<double>(gemm->k);
    return {0, 2 * m * n * k};
  }
  if (std::holds_alternative<ChaseShape>(shape)) return {8, 0};  // one load
  const auto& cache = std::get<CacheShape>(shape);
  const std::int64_t seen = cache.context / cache.tokens_per_entry;
  const double entries = static_cast<double>(cache.sequences) *
                         static_cast<double>(cache.rows_per_sequence) * static_cast<double>(seen);
  return {0, 2 * entries * static_cast<double>(cache.heads * cache.head_dim)};
}

[[noreturn]] void refuse(const TimingTable& table, const TimedRow& row, const std::string& means) {
  throw ConfigError(fmt::format(
      "{}:{}: a time of {:.4g} s for {} means {}: is the time in another unit than its column "
      "says?",
      table.file, row.line, row.time.value, shape_text(row.shape), means));
}

}  // namespace

// Caches of today's devices read at most 30 TB/s, matrix units reach at most 4 PFLOP/s. Something
// that moves or computes for at least a second at 1 GB/s or 1 GFLOP/s is too slow for any GPU.
void check_plausible(const TimingTable& table) {
  constexpr double most_bytes = 40e12, most_flop = 5e15, least = 1e9, big = 1e8;
  for (const TimedRow& row : table.rows) {
    const Amount amount = amount_of(row.shape);
    const double bytes = amount.bytes / row.time.value, flop = amount.flop / row.time.value;
    if (bytes > most_bytes) refuse(table, row, fmt::format("{:.3g} TB/s", bytes / 1e12));
    if (flop > most_flop) refuse(table, row, fmt::format("{:.3g} TFLOP/s", flop / 1e12));
    if (amount.bytes > big && bytes < least) {
      refuse(table, row, fmt::format("{:.3g} MB/s", bytes / 1e6));
    }
    if (amount.flop > 1e3 * big && flop < least) {
      refuse(table, row, fmt::format("{:.3g} MFLOP/s", flop / 1e6));
    }
  }
}

std::span<const TimingAdapter> timing_adapters() {
  static const TimingAdapter adapters[] = {
      generic_adapter,           gpu_stream_adapter,     gpu_small_kernels_adapter,
      gpu_l2_cache_adapter,      gpu_cache_adapter,      gpu_latency_adapter,
      neusight_adapter,          vidur_adapter,          aic_gemm_adapter,
      aic_attention_adapter,     aic_logits_adapter,     aic_topk_adapter,
      llmcompass_matmul_adapter, llmcompass_rows_adapter};
  return adapters;
}

std::vector<std::string> timing_adapter_names() {
  std::vector<std::string> names;
  for (const TimingAdapter& adapter : timing_adapters()) names.emplace_back(adapter.name);
  return names;
}

TimingTable read_timings(const std::string& path, const std::string& adapter_name) {
  const std::string text = text_of(path);
  const TimingAdapter& adapter = chosen(path, text, adapter_name);
  TimingTable table = adapter.read(path, text);
  table.file = path;
  table.adapter = adapter.name;
  if (table.rows.empty()) {
    throw ConfigError(fmt::format("{}: no row with a time, expected {}{}", path, adapter.reads,
                                  table.skipped > 0 ? "; all rows: " + table.skipped_why : ""));
  }
  check_plausible(table);
  return table;
}

std::string device_file(std::string_view measured_on) {
  struct Known {
    std::string_view table, file;
  };
  constexpr Known known[] = {{"NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"},
                             {"NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"},
                             {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
                             {"NVIDIA H100 80GB HBM3", "h100-sxm"},
                             {"NVIDIA H200", "h200-sxm"}};
  for (const Known& each : known) {
    if (each.table == measured_on) return std::string(each.file);
  }
  return "";
}

}  // namespace indexpool
