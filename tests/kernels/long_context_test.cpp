// Ten million tokens: sampled blocks of full-size launches over sparse buffers, where 32-bit byte
// offsets into pages, queries and logits would wrap.
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "logits_bench.hpp"
#include "topk_bench.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t ten_million = 10 * 1024 * 1024, kpool = 4;
constexpr std::int64_t pools = ten_million / kpool, states = 64;

// Buffers as large as the launch really needs, of which only what is used becomes resident.
struct LongContext {
  Shape shape = logits_shape("vllm_fp8", 32, 128, kpool);
  std::unique_ptr<Target> target;
  LogitsArgs args;
  std::int64_t rows, physical_pages;
  std::vector<QueryRow> host_rows;
  std::vector<QueryTile> host_tiles;

  LongContext(std::int64_t rows_, std::int64_t visible, std::int64_t physical_pages_,
              std::vector<std::int64_t> blocks)
      : rows(rows_), physical_pages(physical_pages_) {
    sim::simt::Options options;
    options.blocks = std::move(blocks);
    target = make_simt_target(std::move(options));
    const PageLayout layout = page_layout(shape, states);
    args.shape = shape;
    args.cache.states_per_page = states;
    args.cache.page_stride = layout.page_bytes();
    args.cache.pages = sparse("pages", physical_pages * layout.page_bytes());
    args.block_table_width = (visible + states - 1) / states;
    args.block_table = table();
    args.queries = sparse("queries", rows * 32 * 128);
    args.query_scales = reinterpret_cast<float*>(sparse("query scales", rows * 32 * 4));
    args.head_weights = reinterpret_cast<float*>(sparse("head weights", rows * 32 * 4));
    args.logit_scale = 0.015625f;
    args.logits_stride = visible + 8;
    args.logits = reinterpret_cast<float*>(sparse("logits", rows * args.logits_stride * 4));
    args.max_pools = visible;
    args.row_count = rows;
    for (std::int64_t row = 0; row < rows; ++row)
      host_rows.push_back({visible * kpool - 1, 0, 0, 0});
    for (std::int64_t row = 0; row < rows; row += query_rows_per_tile)
      host_tiles.push_back({row, visible, query_rows_per_tile, 0, 0});
    args.tile_count = std::ssize(host_tiles);
    args.rows = upload("rows", host_rows);
    args.tiles = upload("tiles", host_tiles);
    args.host_rows = host_rows.data();
    args.host_tiles = host_tiles.data();
  }

  std::byte* sparse(const char* name, std::int64_t bytes) {
    return target->allocate(name, bytes, std::byte{0}, true);
  }
  template <class T>
  const T* upload(const char* name, const std::vector<T>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    std::byte* const buffer = target->allocate(name, bytes, std::byte{0x7f});
    target->upload(buffer, values.data(), bytes);
    return reinterpret_cast<const T*>(buffer);
  }
  // Spread over all physical pages, the last ones first; 7919 is prime.
  std::int32_t page_of(std::int64_t column) const {
    return static_cast<std::int32_t>(physical_pages - 1 - column * 7919 % physical_pages);
  }
  const std::int32_t* table() {
    std::vector<std::int32_t> entries;
    for (std::int64_t c = 0; c < args.block_table_width; ++c) entries.push_back(page_of(c));
    return upload("block table", entries);
  }
};

float code_value(std::int64_t a, std::int64_t b) {
  return static_cast<float>((a * 31 + b * 17) % 7 - 3);
}
float weight_value(std::int64_t row, std::int64_t head) {
  return static_cast<float>((row + head) % 5 - 2);
}

void fill_pool(LongContext& context, std::int64_t pool) {
  const PageLayout layout = page_layout(context.shape, states);
  std::byte* const page =
      context.args.cache.pages + context.page_of(pool / states) * context.args.cache.page_stride;
  std::vector<std::byte> codes;
  for (std::int64_t c = 0; c < 128; ++c) append_element(DType::e4m3, code_value(pool, c), codes);
  std::memcpy(page + pool % states * layout.code_bytes(), codes.data(), codes.size());
  const float scale = 0.5f;
  std::memcpy(page + layout.scale_offset() + pool % states * 4, &scale, 4);
}

void fill_row(LongContext& context, std::int64_t row) {
  for (std::int64_t head = 0; head < 32; ++head) {
    std::vector<std::byte> codes;
    for (std::int64_t c = 0; c < 128; ++c)
      append_element(DType::e4m3, code_value(row + head, c * 3), codes);
    const std::int64_t at = row * 32 + head;
    std::memcpy(
        const_cast<std::byte*>(static_cast<const std::byte*>(context.args.queries)) + at * 128,
        codes.data(), codes.size());
    const_cast<float*>(context.args.query_scales)[at] = 2;
    const_cast<float*>(context.args.head_weights)[at] = weight_value(row, head);
  }
}

// All sums are of small integers: exact in any order.
float expected_logit(std::int64_t row, std::int64_t pool) {
  double sum = 0;
  for (std::int64_t head = 0; head < 32; ++head) {
    double dot = 0;
    for (std::int64_t c = 0; c < 128; ++c)
      dot += static_cast<double>(code_value(row + head, c * 3)) *
             static_cast<double>(code_value(pool, c));
    sum += static_cast<double>(weight_value(row, head)) * 0.015625 * 2 * std::max(dot, 0.0);
  }
  return static_cast<float>(sum * 0.5);
}

void expect_tile(LongContext& context, std::int64_t tile, std::int64_t pool_tile) {
  const std::int64_t first = pool_tile * 128;
  const std::int64_t end = std::min(first + 128, context.args.max_pools);
  const std::int64_t first_row = tile * query_rows_per_tile;
  for (const std::int64_t row : {first_row, first_row + query_rows_per_tile - 1})
    for (std::int64_t pool = first; pool < end; ++pool)
      ASSERT_EQ(context.args.logits[row * context.args.logits_stride + pool],
                expected_logit(row, pool))
          << "row " << row << ", pool " << pool;
}

void score_and_check(LongContext& context, std::int64_t tile,
                     const std::vector<std::int64_t>& pool_tiles) {
  for (std::int64_t row = 0; row < query_rows_per_tile; ++row)
    fill_row(context, tile * query_rows_per_tile + row);
  for (const std::int64_t pool_tile : pool_tiles)
    for (std::int64_t pool = pool_tile * 128;
         pool < std::min((pool_tile + 1) * 128, context.args.max_pools); ++pool)
      fill_pool(context, pool);
  const Kernel& kernel = find_kernel("simt", context.args);
  ASSERT_EQ(kernel.name, "logits_mma");
  kernel.launch(context.args, context.target->context());
  EXPECT_EQ(context.target->check_guards(), "");
  for (const std::int64_t pool_tile : pool_tiles) expect_tile(context, tile, pool_tile);
}

TEST(LongContext, LogitsOfTenMillionTokensLandBeyondFourGigabytes) {
  constexpr std::int64_t rows = 512, tile = rows / query_rows_per_tile - 1;
  const std::vector<std::int64_t> pool_tiles = {0, 9999, (pools - 1) / 128};
  std::vector<std::int64_t> blocks;
  for (const std::int64_t pool_tile : pool_tiles)
    blocks.push_back(pool_tile * (rows / query_rows_per_tile) + tile);
  LongContext context(rows, pools, 1'000'000, blocks);
  const std::int64_t last_row = (rows - 1) * context.args.logits_stride * 4;
  ASSERT_GT(last_row, std::numeric_limits<std::uint32_t>::max());
  ASSERT_GT(context.page_of(0) * context.args.cache.page_stride,
            std::numeric_limits<std::uint32_t>::max());
  score_and_check(context, tile, pool_tiles);
}

TEST(LongContext, QueriesOfAMillionRowsLieBeyondFourGigabytes) {
  constexpr std::int64_t rows = 1'100'000 / query_rows_per_tile * query_rows_per_tile;
  constexpr std::int64_t tiles = rows / query_rows_per_tile;
  LongContext context(rows, 200, 64, {tiles - 1, 2 * tiles - 1});
  ASSERT_GT((rows - 1) * 32 * 128, std::numeric_limits<std::uint32_t>::max());
  score_and_check(context, tiles - 1, {0, 1});
}

TEST(LongContext, TopkOfTenMillionTokensReadsBeyondFourGigabytes) {
  constexpr std::int64_t rows = 512;
  const IndexerConfig config = topk_config(512, kpool, true);
  const TopkRow last = topk_row(config, topk_fill("narrow_range", pools, 3), 2);
  sim::simt::Options options;
  options.blocks = {rows - 1};
  options.count = false;
  const auto target = make_simt_target(std::move(options));
  const auto sparse = [&](const char* name, std::int64_t bytes) {
    return target->allocate(name, bytes, std::byte{0}, true);
  };
  TopkArgs args;
  args.shape.config = config;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.logits_stride = pools;
  args.row_count = rows;
  auto* const logits = reinterpret_cast<float*>(sparse("logits", rows * pools * 4));
  ASSERT_GT((rows - 1) * pools * 4, std::numeric_limits<std::uint32_t>::max());
  std::copy(last.logits.begin(), last.logits.end(), logits + (rows - 1) * pools);
  auto* const queries =
      reinterpret_cast<QueryRow*>(sparse("rows", rows * std::int64_t{sizeof(QueryRow)}));
  queries[rows - 1] = last.query;
  const std::int64_t width = config.selection_width();
  auto* const selection = reinterpret_cast<std::int32_t*>(sparse("selection", rows * width * 4));
  args.logits = logits;
  args.rows = queries;
  args.selection = selection;
  find_kernel("simt", args).launch(args, target->context());
  EXPECT_EQ(target->check_guards(), "");
  EXPECT_EQ(std::vector<std::int32_t>(selection + (rows - 1) * width, selection + rows * width),
            host_selection(config, last));
}

TEST(LongContext, TenMillionTokensAreDeclaredInClosedForm) {
  LogitsArgs args;
  args.shape = logits_shape("vllm_fp8", 32, 128, kpool);
  args.cache.page_stride = page_layout(args.shape, states).page_bytes();
  args.block_table_width = pools / states;
  args.max_pools = args.logits_stride = pools;
  args.row_count = args.tile_count = 1;
  const Work work = find_kernel("simt", "logits_mma")->work(args);
  // Each pool once: 128 codes and a scale, and an entry of the block table per 64 of them.
  EXPECT_EQ(work.unique_read.value, pools * 132 + pools / states * 4 + 32 + 8 + 32 * (128 + 8));
  EXPECT_EQ(work.unique_write.value, pools * 4);
  EXPECT_EQ(work.blocks, pools / 128);
  // 2 flop per head, channel and pool: 2 * 32 * 128.
  EXPECT_EQ(work.matrix_flop.value, 8192.0 * pools);
}

}  // namespace
}  // namespace indexpool::kernels
