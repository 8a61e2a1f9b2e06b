// topk against a stable sort, row by row.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "topk_bench.hpp"

namespace indexpool::kernels {
namespace {

std::span<const std::int32_t> selected_of(const TopkRun& run, const IndexerConfig& config,
                                          std::size_t row) {
  const auto width = static_cast<std::size_t>(config.selection_width());
  return std::span(run.selection).subspan(row * width, width);
}

bool agrees(const TopkRun& run, const IndexerConfig& config, const TopkRow& row, std::size_t i) {
  const auto found = selected_of(run, config, i);
  const auto expected = host_selection(config, row);
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end());
}

// Every family of rows at lengths around warps, groups and the number of places, 2,000 rows in all
// but one lane order each: the answer is unique, so agreement is agreement between orders.
TEST(Topk, AgreesWithAStableSortOnAdversarialRows) {
  const auto names = topk_fill_names();
  const std::vector<std::int64_t> lengths = {0,   1,   15,  16,  17,  31,   33,   127, 128,
                                             129, 200, 255, 300, 511, 1023, 1025, 1300};
  const sim::simt::LaneOrder orders[] = {
      sim::simt::LaneOrder::forward, sim::simt::LaneOrder::reverse, sim::simt::LaneOrder::random};
  std::uint64_t seed = 1;
  std::size_t compared = 0;
  for (const std::int64_t topk_pools : {1, 16, 64}) {
    for (const std::int64_t kpool : {1, 4}) {
      const IndexerConfig config = topk_config(topk_pools, kpool, kpool > 1);
      for (const std::string& name : names) {
        std::vector<TopkRow> rows;
        for (const std::int64_t length : lengths) {
          ++seed;
          const auto tail = static_cast<std::int64_t>(seed) % kpool;
          rows.push_back(topk_row(config, topk_fill(name, length, seed), tail,
                                  static_cast<std::int64_t>(seed % 5)));
        }
        sim::simt::Options options;
        options.count = false;
        options.order = orders[seed / 17 % 3];
        const TopkRun run = run_topk(config, rows, seed % 2 == 0 ? 1300 : 1303, options);
        for (std::size_t i = 0; i < rows.size(); ++i, ++compared)
          EXPECT_TRUE(agrees(run, config, rows[i], i)) << name << " of " << lengths[i] << " pools, "
                                                       << topk_pools << " places, seed " << seed;
      }
    }
  }
  EXPECT_EQ(compared, 2040u);
}

RC_GTEST_PROP(Topk, DeclaredTrafficIsTheCountedTrafficWhateverTheLogits, ()) {
  const IndexerConfig config =
      topk_config(*rc::gen::inRange<std::int64_t>(1, 40), *rc::gen::inRange<std::int64_t>(1, 6),
                  *rc::gen::arbitrary<bool>());
  const auto name = *rc::gen::elementOf(topk_fill_names());
  std::vector<TopkRow> rows;
  std::int64_t longest = 1;
  for (int i = *rc::gen::inRange(1, 3); i > 0; --i) {
    const auto length = *rc::gen::weightedOneOf<std::int64_t>(
        {{3, rc::gen::inRange<std::int64_t>(0, 300)}, {1, rc::gen::just<std::int64_t>(9000)}});
    longest = std::max(longest, length);
    rows.push_back(topk_row(config, topk_fill(name, length, *rc::gen::arbitrary<std::uint64_t>()),
                            *rc::gen::inRange<std::int64_t>(0, config.index_kpool)));
  }
  const auto stride = longest + *rc::gen::inRange<std::int64_t>(0, 9);
  const TopkRun run = run_topk(config, rows, stride);
  RC_ASSERT(run.declared.global_load.value == run.counted.global_load.value);
  RC_ASSERT(run.declared.global_store.value == run.counted.global_store.value);
  RC_ASSERT(run.declared.load_sectors == run.counted.load_sectors);
  RC_ASSERT(run.declared.store_sectors == run.counted.store_sectors);
  RC_ASSERT(run.declared.shared_load.value == run.counted.shared_load.value);
  RC_ASSERT(run.declared.shared_store.value == run.counted.shared_store.value);
  RC_ASSERT(run.declared.shared_wavefronts == run.counted.shared_wavefronts);
  RC_ASSERT(run.declared.block_barriers == run.counted.block_barriers);
  RC_ASSERT(run.declared.shuffles == run.counted.shuffles);
  RC_ASSERT(run.declared == run.counted);
  for (std::size_t i = 0; i < rows.size(); ++i) RC_ASSERT(agrees(run, config, rows[i], i));
}

TEST(Topk, LongRowsOfOneMillionTokens) {
  const IndexerConfig config = topk_config(512, 4, true);
  for (const char* name : {"normal", "all_equal", "relu_plateau", "mostly_nan"}) {
    const std::vector<TopkRow> rows = {topk_row(config, topk_fill(name, 262144, 7), 3)};
    sim::simt::Options options;
    options.count = false;
    EXPECT_TRUE(agrees(run_topk(config, rows, 262144, options), config, rows[0], 0)) << name;
  }
}

// Two pools of equal logits: the lower one; its tokens, then nothing, then the tail.
TEST(Topk, TiesGoToTheLowerPoolAndTheTailFollowsTheSelected) {
  const IndexerConfig config = topk_config(2, 4, true);
  const std::vector<TopkRow> rows = {topk_row(config, {1, 3, 1, 1}, 2, 10)};
  const std::vector<std::int32_t> expected = {10, 11, 12, 13, 14, 15, 16, 17, 26, 27, -1};
  EXPECT_EQ(run_topk(config, rows, 4).selection, expected);
}

TEST(Topk, ARowWithoutAVisiblePoolHasItsTailOnly) {
  const IndexerConfig config = topk_config(2, 4, true);
  const std::vector<TopkRow> rows = {topk_row(config, {}, 3)};
  const std::vector<std::int32_t> expected = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2};
  EXPECT_EQ(run_topk(config, rows, 4).selection, expected);
}

TEST(Topk, NanIsNeverSelectedAndMinusInfinityIsANumber) {
  const IndexerConfig config = topk_config(3, 1, false);
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TopkRow> rows = {topk_row(config, {nan, -inf, nan, -nan, -inf}, 0)};
  EXPECT_EQ(run_topk(config, rows, 8).selection, (std::vector<std::int32_t>{1, 4, -1}));
}

TEST(Topk, DeclaresTheFivePassesThatReadALongRowAgain) {
  TopkArgs args;
  args.shape.config = topk_config(512, 4, true);
  args.row_count = 3;
  args.logits_stride = 4096;  // without rows: all visible
  const Work longer = find_kernel("simt", "topk")->work(args);
  EXPECT_EQ(longer.reread, Bytes(3 * 5 * 4096 * 4));
  EXPECT_EQ(longer.reuse_per_block, Bytes(4096 * 4));
  args.logits_stride = 512;  // nothing to choose: counted, then written down
  EXPECT_EQ(find_kernel("simt", "topk")->work(args).reread, Bytes(3 * 512 * 4));
}

TEST(Topk, RefusesTokensBeyondInt32) {
  const IndexerConfig config = topk_config(2, 4, true);
  TopkArgs args;
  args.shape.config = config;
  args.logits_stride = std::int64_t{1} << 30;
  QueryRow row{};
  row.position = std::int64_t{1} << 31;
  args.host_rows = &row;
  args.row_count = 1;
  const auto reason = find_kernel("simt", "topk")->unsupported(args);
  ASSERT_TRUE(reason.has_value());
  EXPECT_NE(reason->find("2147483648"), std::string::npos) << *reason;
}

}  // namespace
}  // namespace indexpool::kernels
