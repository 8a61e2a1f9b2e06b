// Logits by plain loops, with one fault or none.
#include <algorithm>
#include <array>
#include <cmath>

#include "indexpool/verify/field/stand_ins.hpp"

namespace indexpool::verify {
namespace {

using kernels::LaunchContext;
using kernels::LogitsArgs;
using kernels::OpArgs;

constexpr std::int64_t batch_tile = 64;

std::int64_t visible_pools(const LogitsArgs& args, const kernels::QueryRow& row,
                           LogitsFault fault) {
  const std::int64_t kpool = args.shape.config.index_kpool;
  switch (fault) {
    case LogitsFault::open_pool_visible:
      return std::min(row.position / kpool + 1, args.max_pools);
    case LogitsFault::future_visible:
      return args.max_pools;
    default:
      return (row.position + 1) / kpool;
  }
}

// Where the request's row of the block table starts.
std::int64_t table_row(const LogitsArgs& args, std::int64_t request, LogitsFault fault) {
  if (fault != LogitsFault::batch_stride) return request * args.block_table_width;
  return request % batch_tile * args.block_table_width + request / batch_tile;
}

struct State {
  const std::byte* codes = nullptr;
  float scale = 1;
};
State state_of(const LogitsArgs& args, std::int64_t table, std::int64_t pool) {
  const std::int64_t states = args.cache.states_per_page;
  const std::int64_t page = args.block_table[table + pool / states];
  const std::int64_t code_bytes =
      args.shape.config.index_head_dim * info(args.shape.mode.cache).bytes;
  const std::byte* start = args.cache.pages + page * args.cache.page_stride;
  State state{start + pool % states * code_bytes, 1};
  if (args.shape.mode.quantised()) {
    const std::byte* scales = start + states * code_bytes;
    state.scale = static_cast<float>(load_element(DType::f32, scales, pool % states));
  }
  return state;
}

float logit(const LogitsArgs& args, std::int64_t row, const State& state, LogitsFault fault) {
  const std::int64_t heads = args.shape.config.index_n_heads;
  const std::int64_t dim = args.shape.config.index_head_dim;
  const NumericMode& mode = args.shape.mode;
  const DType code = mode.quantised() ? mode.cache : mode.storage;
  const auto* queries = static_cast<const std::byte*>(args.queries);
  float sum = 0;
  for (std::int64_t head = row * heads; head < (row + 1) * heads; ++head) {
    float dot = 0;
    for (std::int64_t c = 0; c < dim; ++c) {
      dot = std::fma(static_cast<float>(load_element(code, queries, head * dim + c)),
                     static_cast<float>(load_element(mode.cache, state.codes, c)), dot);
    }
    if (fault != LogitsFault::relu_missing) dot = std::max(dot, 0.0f);
    const float scale = args.query_scales == nullptr ? 1.0f : args.query_scales[head];
    sum = std::fma(args.head_weights[head] * args.logit_scale * scale, dot, sum);
  }
  return sum * state.scale;
}

template <LogitsFault fault>
void launch(const OpArgs& any, LaunchContext&) {
  const auto& args = std::get<LogitsArgs>(any);
  for (std::int64_t row = 0; row < args.row_count; ++row) {
    const kernels::QueryRow& query = args.rows[row];
    const std::int64_t table = table_row(args, query.request, fault);
    for (std::int64_t pool = 0; pool < visible_pools(args, query, fault); ++pool) {
      args.logits[row * args.logits_stride + pool] =
          logit(args, row, state_of(args, table, pool), fault);
    }
  }
}

std::optional<std::string> takes(const OpArgs& args) {
  if (std::holds_alternative<LogitsArgs>(args)) return std::nullopt;
  return "it stands in for logits";
}

// It runs on the host: the executor counts nothing.
Work no_work(const OpArgs&) { return {}; }

template <LogitsFault fault>
constexpr kernels::Kernel row() {
  return {"stand-in", "stand_in", takes, launch<fault>, no_work};
}

}  // namespace

const kernels::Kernel& logits_stand_in(LogitsFault fault) {
  using enum LogitsFault;
  static constexpr std::array rows{row<none>(), row<relu_missing>(), row<open_pool_visible>(),
                                   row<future_visible>(), row<batch_stride>()};
  return rows.at(static_cast<std::size_t>(fault));
}

}  // namespace indexpool::verify
