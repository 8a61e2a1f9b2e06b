// pool against the plain loops of host_math.cpp, byte for byte.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

struct Batch {
  std::vector<std::int64_t> lengths;
  Rows rows;
  std::vector<Head> ape;
  std::vector<std::vector<std::int32_t>> block_tables;
  std::vector<StepRequest> step;
  std::int64_t pages = 0;
};

Batch make_batch(const Shape& shape, std::vector<std::int64_t> lengths,
                 std::int64_t states_per_page, std::uint64_t seed) {
  Batch batch;
  batch.lengths = std::move(lengths);
  std::int64_t rows = 0;
  for (const std::int64_t length : batch.lengths) {
    const std::int64_t pages = length / shape.config.index_kpool / states_per_page + 1;
    batch.block_tables.push_back(random_block_table(pages, batch.pages, seed));
    batch.pages += pages;
  }
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    batch.step.push_back(
        {0, batch.lengths[i], rows, static_cast<std::int32_t>(i), batch.block_tables[i]});
    rows += batch.lengths[i];
  }
  batch.rows = random_rows(shape, rows, seed);
  batch.ape = random_ape(shape, seed + 1);
  return batch;
}

Workbench::Sizes sizes_for(const Batch& batch, const Shape& shape, std::int64_t states_per_page) {
  Workbench::Sizes sizes;
  sizes.pages = batch.pages;
  sizes.states_per_page = states_per_page;
  sizes.tail_blocks = std::ssize(batch.lengths);
  sizes.ring = shape.config.index_kpool;
  return sizes;
}

HostPool expected_pool(const Shape& shape, const Batch& batch, const StepRequest& request,
                       std::int64_t pool) {
  const std::int64_t kpool = shape.config.index_kpool, first = request.first_row + pool * kpool;
  const auto slice = [&](const std::vector<Head>& rows) {
    return std::vector<Head>(rows.begin() + first, rows.begin() + first + kpool);
  };
  return host_pool(shape.mode, slice(batch.rows.keys), slice(batch.rows.gate_scores), batch.ape);
}

bool same_sums(const PoolChecksum& a, const PoolChecksum& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Every pool of the batch, in the plan's order.
void check_batch(const Shape& shape, const Batch& batch, Workbench& bench,
                 std::int64_t states_per_page) {
  std::size_t index = 0;
  for (const StepRequest& request : batch.step) {
    for (std::int64_t p = 0; p < request.tokens / shape.config.index_kpool; ++p, ++index) {
      const HostPool expected = expected_pool(shape, batch, request, p);
      const HostPool found = bench.pool_at(pool_slot(request.block_table, states_per_page, p));
      ASSERT_EQ(found.stored, expected.stored)
          << "pool " << p << " of block " << request.tail_block;
      ASSERT_EQ(found.scale, expected.scale) << "pool " << p;
      ASSERT_TRUE(same_sums(bench.checksums[index], expected.checksum)) << "pool " << p;
    }
  }
}

class PoolShapes : public testing::TestWithParam<std::tuple<std::string, int, int>> {};

TEST_P(PoolShapes, EqualsThePlainLoopsByteForByte) {
  const auto& [mode, head_dim, kpool] = GetParam();
  const Shape shape = make_shape(mode, head_dim, kpool);
  // Around a page, a warp's and a block's pools; partial last pools.
  const Batch batch = make_batch(shape, {kpool * 5 + kpool - 1, kpool - 1, kpool * 12, 1}, 4, 7);
  Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
  bench.prefill(batch.rows, batch.step);
  check_batch(shape, batch, bench, 4);
}

INSTANTIATE_TEST_SUITE_P(All, PoolShapes,
                         testing::Combine(testing::ValuesIn(mode_names()),
                                          testing::Values(32, 64, 128),
                                          testing::Values(1, 2, 3, 4, 5, 8, 16)),
                         [](const auto& shape) {
                           return std::get<0>(shape.param) + "_" +
                                  std::to_string(std::get<1>(shape.param)) + "_" +
                                  std::to_string(std::get<2>(shape.param));
                         });

RC_GTEST_PROP(Pool, AnyRaggedBatchEqualsThePlainLoops, ()) {
  const auto mode = *rc::gen::elementOf(mode_names());
  const Shape shape = make_shape(mode, *rc::gen::element(32, 64, 128), *rc::gen::inRange(1, 18));
  const auto lengths = *rc::gen::nonEmpty(rc::gen::resize(
      4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 40))));
  const std::int64_t states = *rc::gen::element<std::int64_t>(1, 2, 3, 7, 32, 64);
  const Batch batch = make_batch(shape, lengths, states, *rc::gen::arbitrary<std::uint64_t>());
  Workbench::Sizes sizes = sizes_for(batch, shape, states);
  sizes.checksums = *rc::gen::arbitrary<bool>();
  Workbench bench(shape, batch.ape, sizes);
  bench.prefill(batch.rows, batch.step);
  for (const StepRequest& request : batch.step) {
    for (std::int64_t p = 0; p < request.tokens / shape.config.index_kpool; ++p) {
      const HostPool expected = expected_pool(shape, batch, request, p);
      const HostPool found = bench.pool_at(pool_slot(request.block_table, states, p));
      RC_ASSERT(found.stored == expected.stored);
      RC_ASSERT(found.scale == expected.scale);
    }
  }
}

TEST(Pool, LaneOrderChangesNoByte) {
  for (const std::string& mode : mode_names()) {
    const Shape shape = make_shape(mode, 64, 4);
    const Batch batch = make_batch(shape, {37, 21}, 3, 11);
    std::vector<std::vector<std::byte>> pages;
    for (const auto order : {sim::simt::LaneOrder::forward, sim::simt::LaneOrder::reverse,
                             sim::simt::LaneOrder::random}) {
      sim::simt::Options options;
      options.order = order;
      Workbench bench(shape, batch.ape, sizes_for(batch, shape, 3), options);
      bench.prefill(batch.rows, batch.step);
      pages.push_back(bench.pages());
    }
    EXPECT_EQ(pages[0], pages[1]) << mode;
    EXPECT_EQ(pages[0], pages[2]) << mode;
  }
}

TEST(Pool, PartialPoolWritesNothing) {
  const Shape shape = make_shape("vllm_fp8", 128, 4);
  const Batch batch = make_batch(shape, {3}, 4, 5);
  Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
  bench.prefill(batch.rows, batch.step);
  for (const std::byte byte : bench.pages()) ASSERT_EQ(byte, std::byte{0x7f});
}

// Hand-worked: equal scores weigh equally, so the pool is the mean; a vector of ones rotates to
// sqrt(D) in channel 0 and zeros, 128^0.5 = 11.3125 in bf16, scale 2^ceil(log2(11.3125/448)) =
// 2^-5, code 362 -> 352 (steps of 32), which e4m3 writes 0x7b. The scale's bits 0x3d000000 become
// 0x8b376660 in the exact sum; channel 0 weighs 1.
TEST(Pool, OnesGoToTheFirstChannel) {
  const Shape shape = make_shape("vllm_fp8", 128, 4);
  Batch batch = make_batch(shape, {4}, 4, 5);
  for (Head& key : batch.rows.keys) key.assign(128, 1.0f);
  for (Head& gate : batch.rows.gate_scores) gate.assign(128, 0.5f);
  for (Head& bias : batch.ape) bias.assign(128, -2.0f);
  Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
  bench.prefill(batch.rows, batch.step);
  const HostPool found = bench.pool_at(pool_slot(batch.block_tables[0], 4, 0));
  EXPECT_EQ(found.scale, 0x1p-5f);
  EXPECT_EQ(found.stored[0], 0x7b);
  for (std::size_t c = 1; c < 128; ++c) EXPECT_EQ(found.stored[c], 0) << c;
  EXPECT_EQ(bench.checksums[0].sum, 128.0f);
  EXPECT_EQ(bench.checksums[0].exact_sum, 0x8b376660u + 352 * 512);
  EXPECT_EQ(bench.checksums[0].exact_weighted_sum, 352u * 512);
}

// Equal scores; channel 0 is 1 and channel 1 is -1, whose bits turned left by one are 0x7f00(0000)
// and one more, the one in the low half where there are two. h(0) = 1, h(1) = 0x14e28b73.
TEST(Pool, ElementsCountWithTheirSignLast) {
  constexpr std::uint32_t h1 = 0x14e28b73;
  for (const char* mode : {"bf16", "hf_bf16", "hf_f32"}) {
    const Shape shape = make_shape(mode, 128, 4);
    Batch batch = make_batch(shape, {4}, 4, 5);
    for (Head& key : batch.rows.keys) {
      key.assign(128, 0.0f);
      key[0] = 1, key[1] = -1;
    }
    for (Head& gate : batch.rows.gate_scores) gate.assign(128, 0.5f);
    for (Head& bias : batch.ape) bias.assign(128, -2.0f);
    Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
    bench.prefill(batch.rows, batch.step);
    const std::uint32_t of_the_sign = shape.mode.cache == DType::f32 ? 2 * 128 + 1 : 1;
    EXPECT_EQ(bench.checksums[0].exact_sum, 2u * 0x7f00 + 1) << mode;
    EXPECT_EQ(bench.checksums[0].exact_weighted_sum, 0x7f00 + h1 * (0x7f00 + of_the_sign)) << mode;
  }
}

// A score that dwarfs the others picks its token alone, exactly.
TEST(Pool, DominantScorePicksItsToken) {
  const Shape shape = make_shape("bf16", 128, 4);
  Batch batch = make_batch(shape, {4}, 4, 5);
  batch.rows.gate_scores[2].assign(128, 300.0f);
  Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
  bench.prefill(batch.rows, batch.step);
  const HostPool found = bench.pool_at(pool_slot(batch.block_tables[0], 4, 0));
  EXPECT_EQ(found.stored, host_store(DType::bf16, batch.rows.keys[2]));
}

// Independent of the kernels' exp: binary64 with the library's, before any rounding (f32 sums of at
// most 16 terms and an exp within 2 ulp: 2^-19 of the largest key is ample and tells a wrong
// formula).
TEST(Pool, ChecksumIsTheSumOfTheExactPool) {
  const Shape shape = make_shape("bf16", 128, 8);
  const Batch batch = make_batch(shape, {8 * 9}, 4, 23);
  Workbench bench(shape, batch.ape, sizes_for(batch, shape, 4));
  bench.prefill(batch.rows, batch.step);
  for (std::size_t p = 0; p < 9; ++p) {
    double sum = 0, magnitude = 0;
    for (std::size_t c = 0; c < 128; ++c) {
      double numerator = 0, denominator = 0;
      for (std::size_t j = 0; j < 8; ++j) {
        const double weight =
            std::exp(static_cast<double>(batch.rows.gate_scores[8 * p + j][c] + batch.ape[j][c]));
        numerator += weight * static_cast<double>(batch.rows.keys[8 * p + j][c]);
        denominator += weight;
        magnitude += std::abs(static_cast<double>(batch.rows.keys[8 * p + j][c]));
      }
      sum += numerator / denominator;
    }
    EXPECT_NEAR(static_cast<double>(bench.checksums[p].sum), sum, magnitude * 0x1p-19);
  }
}

}  // namespace
}  // namespace indexpool::kernels
