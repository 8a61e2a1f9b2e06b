#include "indexpool/verify/measure/arguments.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "indexpool/kernels/unplaced.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::verify::timing {
namespace {

// A step that permutes 0 ... count - 1 and takes neighbours far apart.
std::int64_t scatter_step(std::int64_t count) {
  std::int64_t step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(count) * 0.6180339887));
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

struct Builder {
  const Point& point;
  const Geometry& geometry;
  kernels::Shape shape;
  HostArguments out;

  Builder(const Point& p, const Geometry& g)
      : point(p), geometry(g), shape{g.indexer, numeric_mode(p.mode)} {}

  std::int64_t kpool() const { return geometry.indexer.index_kpool; }

  void add_pages() {
    const std::int64_t pools = point.tokens / kpool();
    const std::int64_t states = geometry.states_per_page;
    out.table_width = std::max<std::int64_t>(1, (pools + states - 1) / states);
    out.pages = checked_product(out.table_width, point.batch, "pages of a batch");
    const std::int64_t step = scatter_step(out.pages);
    std::int64_t page = 0;
    for (std::int64_t i = 0; i < out.pages; ++i, page = (page + step) % out.pages) {
      out.block_table.push_back(static_cast<std::int32_t>(page));
    }
  }
  std::span<const std::int32_t> table_of(std::int64_t sequence) const {
    return std::span(out.block_table)
        .subspan(static_cast<std::size_t>(sequence * out.table_width),
                 static_cast<std::size_t>(out.table_width));
  }
  kernels::PagedCache cache() const {
    return kernels::unplaced_cache(shape, geometry.states_per_page);
  }
  kernels::TailRing tail() {
    out.tail_blocks = point.batch;
    return kernels::unplaced_tail(shape, 0);
  }
  // `tokens` of each sequence that end at `end(sequence)`.
  template <class End>
  std::vector<kernels::StepRequest> step(std::int64_t tokens, const End& end) {
    std::vector<kernels::StepRequest> requests;
    for (std::int64_t s = 0; s < point.batch; ++s) {
      requests.push_back(
          {end(s) - tokens, tokens, s * tokens, static_cast<std::int32_t>(s), table_of(s)});
    }
    out.input_rows = checked_product(tokens, point.batch, "rows of a batch");
    return requests;
  }
  // The last `point.rows` positions of each sequence.
  void add_rows() {
    for (std::int64_t s = 0; s < point.batch; ++s) {
      for (std::int64_t i = 0; i < point.rows; ++i) {
        out.rows.push_back({point.tokens - point.rows + i, 0, s, 0});
      }
    }
    out.input_rows = std::ssize(out.rows);
  }

  void pool() {
    add_pages();
    kernels::PoolArgs args;
    args.shape = shape;
    args.cache = cache();
    args.tail = tail();
    const auto requests = step(point.tokens, [&](std::int64_t) { return point.tokens; });
    out.pool_jobs =
        kernels::plan_prefill(requests, kpool(), geometry.states_per_page, args.tail.ring).pools;
    args.job_count = std::ssize(out.pool_jobs);
    args.host_jobs = out.pool_jobs.data();
    out.args = args;
  }
  void seed_tail() {
    kernels::SeedTailArgs args;
    args.shape = shape;
    args.tail = tail();
    const std::int64_t kept = std::min<std::int64_t>(point.tokens, args.tail.ring);
    out.input_rows = kept * point.batch;
    for (std::int64_t row = 0; row < out.input_rows; ++row) {
      const std::int64_t position = point.tokens - kept + row % kept;
      out.tail_jobs.push_back({row, static_cast<std::int32_t>(row / kept),
                               static_cast<std::int32_t>(position % args.tail.ring)});
    }
    args.job_count = std::ssize(out.tail_jobs);
    out.args = args;
  }
  void append() {
    add_pages();
    kernels::AppendArgs args;
    args.shape = shape;
    args.cache = cache();
    args.tail = tail();
    const std::int64_t last_end = point.tokens / kpool() * kpool();
    const auto requests = step(1, [&](std::int64_t s) { return last_end - s % kpool(); });
    out.append = kernels::plan_append(requests, kpool(), geometry.states_per_page);
    args.job_count = std::ssize(out.append.jobs);
    args.pools_closed = out.append.pools_closed;
    args.tokens = out.append.tokens;
    args.host_jobs = out.append.jobs.data();
    args.host_slots = out.append.slots.data();
    out.args = args;
  }
  void quantize_query() {
    kernels::QuantizeQueryArgs args;
    args.shape = shape;
    args.rows = out.input_rows = checked_product(point.rows, point.batch, "rows of a batch");
    out.args = args;
  }
  void logits() {
    add_pages();
    add_rows();
    out.tiles = kernels::plan_query_tiles(out.rows, kpool(), kernels::query_rows_per_tile);
    kernels::LogitsArgs args;
    args.shape = shape;
    args.logit_scale = 0.015625f;  // (heads * head_dim)^-0.5 of 32 x 128
    args.row_count = std::ssize(out.rows);
    args.tile_count = std::ssize(out.tiles);
    args.max_pools = point.tokens / kpool();
    args.cache = cache();
    args.block_table_width = out.table_width;
    args.logits_stride = stride();
    args.host_tiles = out.tiles.data();
    args.host_rows = out.rows.data();
    out.args = args;
  }
  void topk() {
    add_rows();
    kernels::TopkArgs args;
    args.shape = shape;
    args.logits_stride = stride();
    args.row_count = std::ssize(out.rows);
    args.host_rows = out.rows.data();
    out.args = args;
  }
  std::int64_t stride() const { return kernels::whole_logits_stride(point.tokens / kpool()); }
};

struct OperationBuilder {
  const char* op;
  void (Builder::*build)();
};
constexpr OperationBuilder operations[] = {
    {"pool", &Builder::pool},     {"seed_tail", &Builder::seed_tail},
    {"append", &Builder::append}, {"quantize_query", &Builder::quantize_query},
    {"logits", &Builder::logits}, {"topk", &Builder::topk}};

}  // namespace

HostArguments host_arguments(const Point& point, const Geometry& geometry) {
  if (point.tokens < geometry.indexer.index_kpool) {
    throw ConfigError(fmt::format("{}: {} tokens hold no pool of {}", describe(point), point.tokens,
                                  geometry.indexer.index_kpool));
  }
  for (const OperationBuilder& each : operations) {
    if (point.op != each.op) continue;
    Builder builder(point, geometry);
    (builder.*each.build)();
    return std::move(builder.out);
  }
  throw ConfigError("unknown operation \"" + point.op + "\"");
}

}  // namespace indexpool::verify::timing
