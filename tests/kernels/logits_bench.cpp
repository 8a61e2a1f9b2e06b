#include "logits_bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

namespace indexpool::kernels {
namespace {

constexpr std::byte poison{0x7f};

class Random {
 public:
  Random(LogitsFill fill, DType dtype, std::uint64_t seed)
      : fill_(fill), dtype_(dtype), bits_(seed) {}

  float element() {
    if (fill_ == LogitsFill::integers) return static_cast<float>(integer(-3, 3));
    const double spread = dtype_ == DType::i8 ? 40 : dtype_ == DType::e4m3 ? 100 : 1;
    return static_cast<float>(round_to(dtype_, spread * normal_(bits_)));
  }
  float scale() {
    if (fill_ == LogitsFill::integers) return std::ldexp(1.0f, integer(-3, 3));
    return std::exp(static_cast<float>(normal_(bits_)));
  }
  float head_weight() {
    if (fill_ == LogitsFill::integers) return static_cast<float>(integer(-4, 4));
    return static_cast<float>(normal_(bits_));
  }
  std::vector<float> vector(std::int64_t count, float (Random::*draw)()) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = (this->*draw)();
    return values;
  }
  std::mt19937_64& bits() { return bits_; }

 private:
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(bits_); }

  LogitsFill fill_;
  DType dtype_;
  std::mt19937_64 bits_;
  std::normal_distribution<double> normal_;
};

// Shuffled physical pages, a few of them nobody's; entries no kernel may follow behind the used.
void make_block_table(LogitsInputs& inputs, std::mt19937_64& bits) {
  std::int64_t used = 0, widest = 0;
  const auto pages_of = [&](const std::vector<float>& scales) {
    const auto pools = static_cast<std::int64_t>(scales.size());
    return (pools + inputs.states_per_page - 1) / inputs.states_per_page;
  };
  for (const auto& scales : inputs.pool_scales) {
    used += pages_of(scales);
    widest = std::max(widest, pages_of(scales));
  }
  inputs.pages = used + 3;
  inputs.block_table_width = widest + 2;
  std::vector<std::int32_t> pages(static_cast<std::size_t>(inputs.pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), bits);
  for (const auto& scales : inputs.pool_scales) {
    for (std::int64_t column = 0; column < inputs.block_table_width; ++column) {
      if (column < pages_of(scales)) {
        inputs.block_table.push_back(pages.back());
        pages.pop_back();
      } else {
        inputs.block_table.push_back(column % 2 == 0 ? -1
                                                     : std::numeric_limits<std::int32_t>::max());
      }
    }
  }
}

struct Buffers {
  std::unique_ptr<Target> target;

  std::byte* upload(const char* name, const void* from, std::int64_t bytes) {
    std::byte* const buffer = target->allocate(name, std::max<std::int64_t>(bytes, 16), poison);
    target->upload(buffer, from, bytes);
    return buffer;
  }
  template <class T>
  const T* upload(const char* name, const std::vector<T>& values) {
    return reinterpret_cast<const T*>(
        upload(name, values.data(), static_cast<std::int64_t>(values.size() * sizeof(T))));
  }
};

std::byte* upload_cache(Buffers& buffers, const LogitsInputs& inputs, PagedCache& cache) {
  const PageLayout layout = page_layout(inputs.shape, inputs.states_per_page);
  cache.states_per_page = static_cast<std::int32_t>(inputs.states_per_page);
  cache.page_stride = (layout.page_bytes() + 31) / 32 * 32 + 64;
  std::vector<std::byte> bytes(static_cast<std::size_t>(inputs.pages * cache.page_stride), poison);
  for (std::size_t request = 0; request < inputs.pools.size(); ++request) {
    const auto table = std::span(inputs.block_table)
                           .subspan(request * static_cast<std::size_t>(inputs.block_table_width));
    for (std::size_t pool = 0; pool < inputs.pool_scales[request].size(); ++pool) {
      const std::int64_t slot =
          pool_slot(table, inputs.states_per_page, static_cast<std::int64_t>(pool));
      const std::int64_t state = slot % inputs.states_per_page;
      std::byte* const page = bytes.data() + slot / inputs.states_per_page * cache.page_stride;
      std::vector<std::byte> codes;
      const auto dim = static_cast<std::size_t>(inputs.head_dim());
      for (std::size_t c = 0; c < dim; ++c)
        append_element(inputs.shape.mode.cache, inputs.pools[request][pool * dim + c], codes);
      std::memcpy(page + state * layout.code_bytes(), codes.data(), codes.size());
      if (layout.scales)
        std::memcpy(page + layout.scale_offset() + 4 * state, &inputs.pool_scales[request][pool],
                    4);
    }
  }
  return buffers.upload("pages", bytes.data(), static_cast<std::int64_t>(bytes.size()));
}

}  // namespace

void append_element(DType dtype, float value, std::vector<std::byte>& bytes) {
  std::byte element[8];
  store_element(dtype, element, 0, value);
  bytes.insert(bytes.end(), element, element + info(dtype).bytes);
}

Shape logits_shape(const std::string& mode, std::int64_t heads, std::int64_t head_dim,
                   std::int64_t index_kpool) {
  Shape shape;
  shape.mode = numeric_mode(mode);
  shape.config.index_n_heads = heads;
  shape.config.index_head_dim = head_dim;
  shape.config.index_kpool = index_kpool;
  shape.config.index_topk = 64 * index_kpool;
  return shape;
}

LogitsInputs random_logits_inputs(const Shape& shape, const std::vector<LogitsRequest>& requests,
                                  std::int64_t states_per_page, LogitsFill fill,
                                  std::uint64_t seed) {
  LogitsInputs inputs;
  inputs.shape = shape;
  inputs.states_per_page = states_per_page;
  Random random(fill, shape.mode.cache, seed);
  std::int64_t most = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const LogitsRequest& request = requests[r];
    for (std::int64_t i = 0; i < request.rows; ++i)
      inputs.rows.push_back({request.first_position + i, 0, static_cast<std::int64_t>(r), 0});
    const std::int64_t pools = (request.first_position + request.rows) / shape.config.index_kpool;
    most = std::max(most, pools);
    inputs.pools.push_back(random.vector(pools * inputs.head_dim(), &Random::element));
    inputs.pool_scales.push_back(random.vector(pools, &Random::scale));
    if (!shape.mode.quantised())
      std::fill(inputs.pool_scales.back().begin(), inputs.pool_scales.back().end(), 1.0f);
  }
  const auto rows = static_cast<std::int64_t>(inputs.rows.size());
  inputs.queries = random.vector(rows * inputs.heads() * inputs.head_dim(), &Random::element);
  inputs.query_scales = random.vector(rows * inputs.heads(), &Random::scale);
  if (!shape.mode.quantised())
    std::fill(inputs.query_scales.begin(), inputs.query_scales.end(), 1.0f);
  inputs.head_weights = random.vector(rows * inputs.heads(), &Random::head_weight);
  inputs.logit_scale = 0.25f;
  inputs.logits_stride = most + 1 + static_cast<std::int64_t>(random.bits()() % 9);
  make_block_table(inputs, random.bits());
  return inputs;
}

// f32: one rounding per fused multiply-add, D of them, 2^-24 each. Matrix instructions (sm_80): 8
// products and the sum so far are cut at 2^-24 of the largest, the result at 2^-23: 9 + 2 units of
// 2^-24 for every 8 products; sm_90's 25 bits and steps of 16 stay below. Integers are exact.
double dot_error(Accumulation accumulation, std::int64_t head_dim) {
  const double unit = std::ldexp(1.0, -24), products = static_cast<double>(head_dim);
  switch (accumulation) {
    case Accumulation::f32_fma:
      return products * unit * (1 + products * unit);
    case Accumulation::mma_i8:
      return 0;
    default:
      return products / 8 * 11 * unit * (1 + products * unit);
  }
}

HostLogit host_logit(const LogitsInputs& inputs, std::int64_t row, std::int64_t pool,
                     double dot_error_per_product) {
  const auto request = static_cast<std::size_t>(inputs.rows[static_cast<std::size_t>(row)].request);
  const float* const key =
      &inputs.pools[request][static_cast<std::size_t>(pool * inputs.head_dim())];
  const double scale = inputs.pool_scales[request][static_cast<std::size_t>(pool)];
  // Two roundings of the head weight, one per head, two of lanes, one of the scale.
  const double sum_error = static_cast<double>(inputs.heads() + 8) * std::ldexp(1.0, -24);
  HostLogit logit;
  for (std::int64_t head = 0; head < inputs.heads(); ++head) {
    const auto at = static_cast<std::size_t>(row * inputs.heads() + head);
    const float* const query = &inputs.queries[at * static_cast<std::size_t>(inputs.head_dim())];
    double dot = 0, magnitude = 0;
    for (std::int64_t c = 0; c < inputs.head_dim(); ++c) {
      const double product = static_cast<double>(query[c]) * static_cast<double>(key[c]);
      dot += product;
      magnitude += std::abs(product);
    }
    const double weight = static_cast<double>(inputs.head_weights[at]) *
                          static_cast<double>(inputs.logit_scale) *
                          static_cast<double>(inputs.query_scales[at]);
    const double positive = std::max(dot, 0.0);
    logit.value += weight * positive;
    logit.bound += std::abs(weight) *
                   (dot_error_per_product * magnitude * (1 + sum_error) + sum_error * positive);
  }
  logit.value *= scale;
  logit.bound *= std::abs(scale);
  return logit;
}

LogitsRun run_logits(std::string_view kernel_name, const LogitsInputs& inputs,
                     sim::simt::Options options) {
  Buffers buffers{make_simt_target(std::move(options))};
  const std::vector<QueryTile> tiles =
      plan_query_tiles(inputs.rows, inputs.shape.config.index_kpool, query_rows_per_tile);
  LogitsArgs args;
  args.shape = inputs.shape;
  std::vector<std::byte> codes;
  for (const float value : inputs.queries) append_element(inputs.shape.mode.cache, value, codes);
  args.queries = buffers.upload("queries", codes);
  if (inputs.shape.mode.quantised())
    args.query_scales = buffers.upload("query scales", inputs.query_scales);
  args.head_weights = buffers.upload("head weights", inputs.head_weights);
  args.logit_scale = inputs.logit_scale;
  args.rows = buffers.upload("rows", inputs.rows);
  args.tiles = buffers.upload("tiles", tiles);
  args.row_count = std::ssize(inputs.rows);
  args.tile_count = std::ssize(tiles);
  for (const QueryTile& tile : tiles) args.max_pools = std::max(args.max_pools, tile.pools);
  args.cache.pages = upload_cache(buffers, inputs, args.cache);
  args.block_table = buffers.upload("block table", inputs.block_table);
  args.block_table_width = inputs.block_table_width;
  args.logits_stride = inputs.logits_stride;
  const std::int64_t bytes = args.row_count * args.logits_stride * 4;
  std::byte* const logits = buffers.target->allocate("logits", bytes, poison);
  args.logits = reinterpret_cast<float*>(logits);
  args.host_tiles = tiles.data();
  args.host_rows = inputs.rows.data();

  const Kernel* const kernel = find_kernel("simt", kernel_name);
  if (kernel == nullptr) throw std::runtime_error("no such kernel");
  if (const auto reason = kernel->unsupported(args)) throw std::runtime_error(*reason);
  kernel->launch(args, buffers.target->context());
  if (const std::string damage = buffers.target->check_guards(); !damage.empty())
    throw std::runtime_error(damage);
  LogitsRun run;
  run.work = kernel->work(args);
  run.declared = run.work.traffic;
  run.counted = buffers.target->context().simt->counted;
  run.logits.resize(static_cast<std::size_t>(args.row_count * args.logits_stride));
  buffers.target->download(run.logits.data(), logits, bytes);
  return run;
}

}  // namespace indexpool::kernels
