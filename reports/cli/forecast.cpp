#include "indexpool/reports/cli/forecast.hpp"

#include <algorithm>
#include <numeric>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace {

using kernels::OpArgs;

// Arguments without memory: declared work needs shapes only.
struct Shapes {
  kernels::Shape shape;
  std::int64_t states_per_page;

  explicit Shapes(const ArchitectureConfig& architecture)
      : shape{architecture.indexer, numeric_mode(architecture.numeric_mode)},
        states_per_page(architecture.states_per_page) {}

  kernels::PagedCache cache() const {
    kernels::PagedCache cache;
    cache.page_stride = kernels::page_layout(shape, states_per_page).page_bytes();
    cache.states_per_page = static_cast<std::int32_t>(states_per_page);
    return cache;
  }
  kernels::TailRing tail() const {
    kernels::TailRing tail;
    tail.ring = static_cast<std::int32_t>(kernels::ring_size(shape.config.index_kpool, 0));
    tail.block_stride =
        2 * tail.ring * shape.config.index_head_dim * info(shape.mode.storage).bytes;
    return tail;
  }
  std::int64_t pools(std::int64_t tokens) const { return tokens / shape.config.index_kpool; }
};

OperationForecast forecast(std::string op, const OpArgs& args, const DeviceSpec& device) {
  OperationForecast out;
  out.op = std::move(op);
  try {
    const kernels::Kernel& kernel = kernels::find_kernel("simt", args);
    out.kernel = kernel.name;
    out.work = kernel.work(args);
    out.prediction = predict(out.work, device);
  } catch (const ConfigError& refusal) {
    out.refusal = refusal.what();
  }
  return out;
}

OpArgs pool_args(const Shapes& shapes, std::int64_t tokens) {
  kernels::PoolArgs args;
  args.shape = shapes.shape;
  args.job_count = shapes.pools(tokens);
  args.tail = shapes.tail();
  args.cache = shapes.cache();
  return args;
}

OpArgs append_args(const Shapes& shapes) {
  kernels::AppendArgs args;
  args.shape = shapes.shape;
  args.job_count = args.tokens = args.pools_closed = 1;
  args.tail = shapes.tail();
  args.cache = shapes.cache();
  return args;
}

OpArgs query_args(const Shapes& shapes, std::int64_t rows) {
  kernels::QuantizeQueryArgs args;
  args.shape = shapes.shape;
  args.rows = rows;
  return args;
}

// The last `count` positions of a sequence of `tokens`.
std::vector<kernels::QueryRow> last_rows(std::int64_t tokens, std::int64_t count) {
  std::vector<kernels::QueryRow> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back({tokens - count + i, 0, 0, 0});
  return rows;
}

OperationForecast forecast_logits(const Shapes& shapes, const std::vector<kernels::QueryRow>& rows,
                                  std::int64_t tokens, const DeviceSpec& device) {
  const auto tiles = kernels::plan_query_tiles(rows, shapes.shape.config.index_kpool,
                                               kernels::query_rows_per_tile);
  kernels::LogitsArgs args;
  args.shape = shapes.shape;
  args.row_count = static_cast<std::int64_t>(rows.size());
  args.tile_count = static_cast<std::int64_t>(tiles.size());
  args.max_pools = shapes.pools(tokens);
  args.cache = shapes.cache();
  args.block_table_width = (args.max_pools + shapes.states_per_page - 1) / shapes.states_per_page;
  args.logits_stride = (args.max_pools + 3) / 4 * 4;
  args.host_tiles = tiles.data();
  args.host_rows = rows.data();
  return forecast("logits", args, device);
}

OperationForecast forecast_topk(const Shapes& shapes, const std::vector<kernels::QueryRow>& rows,
                                std::int64_t tokens, const DeviceSpec& device) {
  kernels::TopkArgs args;
  args.shape = shapes.shape;
  args.logits_stride = (shapes.pools(tokens) + 3) / 4 * 4;
  args.row_count = static_cast<std::int64_t>(rows.size());
  args.host_rows = rows.data();
  return forecast("topk", args, device);
}

// One after the other: everything adds, except the memory, which is used again. `longest` is the
// longest part so far; what limits it limits the sum.
void add(Prediction& sum, const Prediction& next, Seconds& longest) {
  if (next.time >= longest) {
    longest = next.time;
    sum.bound_by = next.bound_by;
  }
  sum.device = next.device;
  sum.time += next.time;
  sum.low += next.low;
  sum.high += next.high;
  sum.hbm_bytes += next.hbm_bytes;
  sum.memory = std::max(sum.memory, next.memory);
}

// Operations of a prompt so far.
struct PromptSum {
  std::vector<OperationForecast> operations;
  std::vector<Seconds> longest;

  void add_chunk(const std::vector<OperationForecast>& chunk) {
    operations.resize(chunk.size());
    longest.resize(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      operations[i].op = chunk[i].op;
      operations[i].kernel = chunk[i].kernel;
      operations[i].refusal = chunk[i].refusal;
      operations[i].work.traffic += chunk[i].work.traffic;
      add(operations[i].prediction, chunk[i].prediction, longest[i]);
    }
  }
};

// The tokens [start, end) of a prompt.
std::vector<OperationForecast> chunk_forecast(const Shapes& shapes, const DeviceSpec& device,
                                              std::int64_t start, std::int64_t end) {
  const auto rows = last_rows(end, end - start);
  std::vector<OperationForecast> chunk = {forecast("pool", pool_args(shapes, end - start), device)};
  if (shapes.shape.mode.quantised()) {
    chunk.push_back(forecast("quantize_query", query_args(shapes, end - start), device));
  }
  chunk.push_back(forecast_logits(shapes, rows, end, device));
  chunk.push_back(forecast_topk(shapes, rows, end, device));
  return chunk;
}

}  // namespace

OperationForecast pool_prompt(const ArchitectureConfig& architecture, const DeviceSpec& device,
                              std::int64_t tokens) {
  return forecast("pool", pool_args(Shapes(architecture), tokens), device);
}

std::vector<OperationForecast> decode_step(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device, std::int64_t tokens) {
  const Shapes shapes(architecture);
  const auto rows = last_rows(tokens, 1);
  std::vector<OperationForecast> step = {forecast("append", append_args(shapes), device)};
  if (shapes.shape.mode.quantised()) {
    step.push_back(forecast("quantize_query", query_args(shapes, 1), device));
  }
  step.push_back(forecast_logits(shapes, rows, tokens, device));
  step.push_back(forecast_topk(shapes, rows, tokens, device));
  return step;
}

std::vector<std::vector<OperationForecast>> prefill(const ArchitectureConfig& architecture,
                                                    const DeviceSpec& device,
                                                    const std::vector<std::int64_t>& tokens) {
  const Shapes shapes(architecture);
  std::vector<std::vector<OperationForecast>> prompts;
  PromptSum whole_chunks;  // shared by all prompts that are at least as long
  std::int64_t start = 0;
  for (const std::int64_t length : tokens) {
    for (; start + prefill_chunk <= length; start += prefill_chunk) {
      whole_chunks.add_chunk(chunk_forecast(shapes, device, start, start + prefill_chunk));
    }
    PromptSum prompt = whole_chunks;
    if (start < length) prompt.add_chunk(chunk_forecast(shapes, device, start, length));
    prompts.push_back(std::move(prompt.operations));
  }
  return prompts;
}

Prediction all_layers(const std::vector<OperationForecast>& step, std::int64_t layers) {
  Prediction sum;
  Seconds longest;
  for (const OperationForecast& operation : step) add(sum, operation.prediction, longest);
  const auto count = static_cast<double>(layers);
  sum.time = sum.time * count;
  sum.low = sum.low * count;
  sum.high = sum.high * count;
  sum.hbm_bytes = sum.hbm_bytes * layers;
  sum.memory = sum.memory * layers;
  return sum;
}

}  // namespace indexpool::cli
