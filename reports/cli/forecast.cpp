#include "indexpool/reports/cli/forecast.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/kernels/unplaced.hpp"
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

  kernels::PagedCache cache() const { return kernels::unplaced_cache(shape, states_per_page); }
  kernels::TailRing tail() const { return kernels::unplaced_tail(shape, 0); }
  std::int64_t pools(std::int64_t tokens) const { return tokens / shape.config.index_kpool; }
};

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
  args.logits_stride = kernels::whole_logits_stride(args.max_pools);
  args.host_tiles = tiles.data();
  args.host_rows = rows.data();
  return forecast_launch("logits", args, device);
}

OperationForecast forecast_topk(const Shapes& shapes, const std::vector<kernels::QueryRow>& rows,
                                std::int64_t tokens, const DeviceSpec& device) {
  kernels::TopkArgs args;
  args.shape = shapes.shape;
  args.logits_stride = kernels::whole_logits_stride(shapes.pools(tokens));
  args.row_count = static_cast<std::int64_t>(rows.size());
  args.host_rows = rows.data();
  return forecast_launch("topk", args, device);
}

// A prompt of 1G tokens moves more than 2^63 bytes in all its layers: such a sum stays at the
// largest number.
Bytes whole_bytes(double bytes) {
  constexpr double limit = 0x1p63;
  return bytes < limit ? Bytes(static_cast<std::int64_t>(bytes))
                       : Bytes(std::numeric_limits<std::int64_t>::max());
}
double as_double(Bytes bytes) { return static_cast<double>(bytes.value); }

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
  sum.hbm_bytes = whole_bytes(as_double(sum.hbm_bytes) + as_double(next.hbm_bytes));
  sum.memory = std::max(sum.memory, next.memory);
}

// The tokens [start, end) of a prompt.
std::vector<OperationForecast> chunk_forecast(const Shapes& shapes, const DeviceSpec& device,
                                              std::int64_t start, std::int64_t end) {
  const auto rows = last_rows(end, end - start);
  std::vector<OperationForecast> chunk = {
      forecast_launch("pool", pool_args(shapes, end - start), device)};
  if (shapes.shape.mode.quantised()) {
    chunk.push_back(forecast_launch("quantize_query", query_args(shapes, end - start), device));
  }
  chunk.push_back(forecast_logits(shapes, rows, end, device));
  chunk.push_back(forecast_topk(shapes, rows, end, device));
  return chunk;
}

// Where a prompt's whole chunks are looked at: the first 32 each, then steps that grow by an
// eighth, and the last. A chunk's cost grows with its start like a straight line, or in long pieces
// of lines; between two samples it is taken as one.
std::vector<std::int64_t> sampled_chunks(std::int64_t chunks) {
  constexpr std::int64_t each = 16, fraction = 4;
  std::vector<std::int64_t> samples;
  for (std::int64_t at = 0; at < chunks; at += at < each ? 1 : at / fraction) samples.push_back(at);
  if (!samples.empty() && samples.back() != chunks - 1) samples.push_back(chunks - 1);
  return samples;
}

// Chunk after chunk: f(i + 1) + ... + f(j) along the line from f(i) to f(j).
double line_sum(double from, double to, std::int64_t chunks) {
  return static_cast<double>(chunks) * (from + to) / 2 + (to - from) / 2;
}

Prediction between(const Prediction& from, const Prediction& to, std::int64_t chunks) {
  Prediction sum = to;
  const auto line = [&](Seconds Prediction::*part) {
    (sum.*part).value = line_sum((from.*part).value, (to.*part).value, chunks);
  };
  line(&Prediction::time);
  line(&Prediction::low);
  line(&Prediction::high);
  sum.hbm_bytes = whole_bytes(line_sum(as_double(from.hbm_bytes), as_double(to.hbm_bytes), chunks));
  return sum;
}

// Forecasts of whole chunks by their number, made once for all prompts.
class Chunks {
 public:
  Chunks(const Shapes& shapes, const DeviceSpec& device) : shapes_(shapes), device_(device) {}

  std::vector<OperationForecast> prompt(std::int64_t tokens) {
    const std::int64_t whole = tokens / prefill_chunk;
    std::vector<OperationForecast> sum;
    std::vector<Seconds> longest;
    std::int64_t last = 0;
    for (const std::int64_t at : sampled_chunks(whole)) {
      const std::vector<OperationForecast>& chunk = whole_chunk(at);
      const std::vector<OperationForecast>& before = whole_chunk(last);
      join(sum, longest, chunk, [&](std::size_t i) {
        return at - last > 1 ? between(before[i].prediction, chunk[i].prediction, at - last)
                             : chunk[i].prediction;
      });
      last = at;
    }
    if (whole * prefill_chunk < tokens) {
      const auto rest = chunk_forecast(shapes_, device_, whole * prefill_chunk, tokens);
      join(sum, longest, rest, [&](std::size_t i) { return rest[i].prediction; });
    }
    return sum;
  }

 private:
  const std::vector<OperationForecast>& whole_chunk(std::int64_t number) {
    const auto found = made_.find(number);
    if (found != made_.end()) return found->second;
    const std::int64_t start = number * prefill_chunk;
    return made_.emplace(number, chunk_forecast(shapes_, device_, start, start + prefill_chunk))
        .first->second;
  }

  // `longest` is each operation's longest chunk, whose limit names the limit of the sum.
  template <class Part>
  static void join(std::vector<OperationForecast>& sum, std::vector<Seconds>& longest,
                   const std::vector<OperationForecast>& chunk, Part part) {
    sum.resize(chunk.size());
    longest.resize(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      sum[i].op = chunk[i].op;
      sum[i].kernel = chunk[i].kernel;
      sum[i].refusal = chunk[i].refusal;
      Prediction next = part(i);
      const bool limits = chunk[i].prediction.time >= longest[i];
      if (limits) longest[i] = chunk[i].prediction.time;
      if (!limits) next.bound_by = sum[i].prediction.bound_by;
      Seconds always;  // add() takes the limit of the longer part: here of `next`
      add(sum[i].prediction, next, always);
    }
  }

  const Shapes& shapes_;
  const DeviceSpec& device_;
  std::map<std::int64_t, std::vector<OperationForecast>> made_;
};

}  // namespace

OperationForecast forecast_launch(std::string op, const kernels::OpArgs& args,
                                  const DeviceSpec& device) {
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

OperationForecast pool_prompt(const ArchitectureConfig& architecture, const DeviceSpec& device,
                              std::int64_t tokens) {
  return forecast_launch("pool", pool_args(Shapes(architecture), tokens), device);
}

std::vector<OperationForecast> decode_step(const ArchitectureConfig& architecture,
                                           const DeviceSpec& device, std::int64_t tokens) {
  const Shapes shapes(architecture);
  const auto rows = last_rows(tokens, 1);
  std::vector<OperationForecast> step = {forecast_launch("append", append_args(shapes), device)};
  if (shapes.shape.mode.quantised()) {
    step.push_back(forecast_launch("quantize_query", query_args(shapes, 1), device));
  }
  step.push_back(forecast_logits(shapes, rows, tokens, device));
  step.push_back(forecast_topk(shapes, rows, tokens, device));
  return step;
}

std::vector<std::vector<OperationForecast>> prefill(const ArchitectureConfig& architecture,
                                                    const DeviceSpec& device,
                                                    const std::vector<std::int64_t>& tokens) {
  const Shapes shapes(architecture);
  Chunks chunks(shapes, device);
  std::vector<std::vector<OperationForecast>> prompts;
  for (const std::int64_t length : tokens) prompts.push_back(chunks.prompt(length));
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
  sum.hbm_bytes = whole_bytes(as_double(sum.hbm_bytes) * count);
  sum.memory = sum.memory * layers;
  return sum;
}

}  // namespace indexpool::cli
