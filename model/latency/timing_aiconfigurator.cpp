// Tables of ai-dynamo/aiconfigurator, as CSV: latency in ms of CUDA-graph replays, caches warm.
#include <string_view>

#include <fmt/format.h>

#include "indexpool/model/latency/delimited.hpp"
#include "indexpool/model/latency/timing_adapters.hpp"

namespace indexpool {
namespace {

// Appends a row; device and time are read the same way in all of these tables.
class Rows {
 public:
  Rows(const HeadedTable& in, TimingTable& out) : in_(in), out_(out) {}
  void add(std::size_t row, const char* form, std::string kernel, const KernelShape& shape,
           std::string part = "") {
    const std::string device = in_.text(row, "device");
    if (out_.measured_on.empty()) {
      out_.measured_on = device;
      out_.default_device = device_file(device);
    }
    if (device != out_.measured_on) {
      in_.fail(
          row, "device",
          fmt::format("found \"{}\" after \"{}\": one device a table", device, out_.measured_on));
    }
    const double milliseconds = in_.number(row, "latency");
    if (milliseconds < 0) in_.fail(row, "latency", "a negative time");
    if (milliseconds == 0) {
      ++out_.skipped;
      return;
    }
    std::string family = shape_text(shape);
    // Of top-k: the same rows at another k, or with other scores, belong together.
    family = family.substr(0, family.find(",topk="));
    out_.rows.push_back({form, std::move(kernel), shape, Seconds(milliseconds * 1e-3),
                         in_.line(row), std::move(family), std::move(part)});
  }

 private:
  const HeadedTable& in_;
  TimingTable& out_;
};

TimingTable read_gemm(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  Rows rows(in, table);
  for (std::size_t row = 0; row < in.rows(); ++row) {
    if (in.text(row, "gemm_dtype") != "bfloat16") {
      ++table.skipped;
      continue;
    }
    rows.add(row, "tile_gemm", "gemm bf16",
             GemmShape{in.count(row, "m"), in.count(row, "n"), in.count(row, "k"), 2});
  }
  table.skipped_why = "not bfloat16, or latency 0";
  return table;
}

// Indexers of the models in the tables: published config.json, index_n_heads and index_topk.
struct IndexerFacts {
  std::string_view model;
  std::int64_t heads, topk;
};
constexpr IndexerFacts indexers[] = {
    {"DeepSeek-V4-Flash", 64, 512}, {"DeepSeek-V4-Pro", 64, 1024}, {"GLM-5", 32, 2048}};

const IndexerFacts& indexer_of(const HeadedTable& in, std::size_t row) {
  const std::string model = in.text(row, "model");
  for (const IndexerFacts& each : indexers) {
    if (model.find(each.model) != std::string::npos) return each;
  }
  in.fail(row, "model",
          fmt::format("found \"{}\", expected DeepSeek-V4-Flash, DeepSeek-V4-Pro or GLM-5", model));
}

CacheShape cache_shape(const HeadedTable& in, std::size_t row) {
  CacheShape shape;
  shape.sequences = in.count(row, "batch_size");
  shape.rows_per_sequence = in.count(row, "isl");
  shape.context = in.count(row, "step", 0);
  shape.tokens_per_entry = in.count(row, "compress_ratio");
  return shape;
}

const char* phase(const CacheShape& shape) {
  return shape.rows_per_sequence == 1 ? "decode" : "prefill";
}

TimingTable read_logits(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  Rows rows(in, table);
  for (std::size_t row = 0; row < in.rows(); ++row) {
    CacheShape shape = cache_shape(in, row);
    shape.heads = indexer_of(in, row).heads;
    shape.head_dim = 128;
    shape.entry_bytes = 132;  // 128 codes and a scale
    rows.add(row, "paged_logits", in.text(row, "kernel_source"), shape, phase(shape));
  }
  table.skipped_why = "latency 0";
  return table;
}

TimingTable read_topk(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  Rows rows(in, table);
  for (std::size_t row = 0; row < in.rows(); ++row) {
    CacheShape shape = cache_shape(in, row);
    shape.topk = indexer_of(in, row).topk;
    rows.add(row, "row_topk",
             fmt::format("{}, {}, k {}", in.text(row, "kernel_source"), in.text(row, "score_mode"),
                         shape.topk),
             shape, phase(shape));
  }
  table.skipped_why = "latency 0: no row has more than k entries, nothing ran";
  return table;
}

// Rows of one token are decode steps; key heads of 0 mean as many as query heads.
TimingTable read_attention(const std::string& file, std::string_view text) {
  const HeadedTable in(file, text);
  TimingTable table;
  Rows rows(in, table);
  for (std::size_t row = 0; row < in.rows(); ++row) {
    if (in.text(row, "attn_dtype") != "bfloat16" || in.text(row, "kv_cache_dtype") != "bfloat16") {
      ++table.skipped;
      continue;
    }
    CacheShape shape;
    shape.sequences = in.count(row, "batch_size");
    shape.rows_per_sequence = in.count(row, "isl");
    shape.context = in.count(row, "step", 0);
    shape.heads = in.count(row, "num_heads");
    const std::int64_t key_heads = in.count(row, "num_key_value_heads", 0);
    shape.key_heads = key_heads == 0 ? shape.heads : key_heads;
    shape.head_dim = in.count(row, "head_dim");
    shape.entry_bytes = std::int64_t{4} * shape.head_dim;  // key and value
    const bool decode =
        shape.rows_per_sequence == 1 && in.text(row, "op_name") != "context_attention";
    rows.add(row, decode ? "decode_attention" : "prefill_attention",
             in.text(row, "kernel_source") + (decode ? ", decode" : ", prefill"), shape,
             decode ? "decode" : "prefill");
  }
  table.skipped_why = "not bfloat16, or latency 0";
  return table;
}

bool heading_has(std::string_view text, std::string_view column) {
  return first_line(text).starts_with("framework,version,device,op_name,") &&
         first_line(text).find(column) != std::string_view::npos;
}
bool second_line_has(std::string_view text, std::string_view word) {
  const std::size_t end = text.find('\n');
  return end != std::string_view::npos &&
         first_line(text.substr(end + 1)).find(word) != std::string_view::npos;
}
bool is_gemm(std::string_view, std::string_view text) {
  return heading_has(text, ",gemm_dtype,m,");
}
bool is_logits(std::string_view, std::string_view text) {
  return heading_has(text, ",compress_ratio,") && second_line_has(text, "mqa_logits");
}
bool is_attention(std::string_view, std::string_view text) {
  return heading_has(text, ",num_key_value_heads,");
}
bool is_topk(std::string_view, std::string_view text) { return heading_has(text, ",score_mode"); }

}  // namespace

const TimingAdapter aic_gemm_adapter = {"aiconfigurator-gemm",
                                        "a CSV with device, gemm_dtype, m, n, k, latency (ms)",
                                        is_gemm, read_gemm};
const TimingAdapter aic_attention_adapter = {
    "aiconfigurator-attention",
    "a CSV with device, kernel_source, batch_size, isl, step, num_heads, num_key_value_heads, "
    "head_dim, attn_dtype, kv_cache_dtype, latency (ms)",
    is_attention, read_attention};
const TimingAdapter aic_logits_adapter = {
    "aiconfigurator-logits",
    "a CSV with device, kernel_source, model, batch_size, isl, step, compress_ratio, latency (ms)",
    is_logits, read_logits};
const TimingAdapter aic_topk_adapter = {
    "aiconfigurator-topk",
    "a CSV with device, kernel_source, model, batch_size, isl, step, compress_ratio, score_mode, "
    "latency (ms)",
    is_topk, read_topk};

}  // namespace indexpool
