// Declared traffic equals counted traffic on any batch (the workbench compares every launch); what
// stays to check is that the declaration follows from the shapes alone.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

RC_GTEST_PROP(Traffic, RaggedDecodeStepsCauseWhatTheyDeclare, ()) {
  const std::string mode = *rc::gen::elementOf(mode_names());
  const auto kpool = *rc::gen::element<std::int64_t>(1, 2, 4, 6);
  const Shape shape = make_shape(mode, *rc::gen::element(32, 64, 128), kpool);
  const auto counts = *rc::gen::nonEmpty(rc::gen::resize(
      20, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 8))));
  Workbench::Sizes sizes;
  sizes.states_per_page = *rc::gen::element<std::int64_t>(1, 3, 64);
  sizes.pages = 20 * std::ssize(counts);  // positions stay below 17
  sizes.ring = ring_size(kpool, 7);
  sizes.tail_blocks = std::ssize(counts);
  sizes.checksums = *rc::gen::arbitrary<bool>();
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<StepRequest> step;
  std::int64_t rows = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto start = *rc::gen::inRange<std::int64_t>(0, 9);
    tables.push_back(random_block_table(20, 20 * static_cast<std::int64_t>(r), r));
    step.push_back({start, counts[r], rows, static_cast<std::int32_t>(r), tables[r]});
    rows += counts[r];
  }
  Workbench bench(shape, random_ape(shape, 1), sizes);
  bench.append(random_rows(shape, rows, 2), step);  // throws when the two differ
}

PoolArgs pool_of(std::int64_t jobs) {
  PoolArgs args;
  args.shape = make_shape("vllm_fp8", 128, 4);
  args.job_count = jobs;
  args.cache.page_stride = page_layout(args.shape, 64).page_bytes();
  return args;
}

TEST(Traffic, PoolMovesEachByteOnce) {
  const Kernel* pool = find_kernel("simt", "pool");
  ASSERT_NE(pool, nullptr);
  const Work work = pool->work(pool_of(1000));
  // Job, four keys and gate scores of 256 bytes; codes and a scale. The biases once per launch.
  EXPECT_EQ(work.unique_read.value, 1000 * (32 + 8 * 256) + 4 * 512);
  EXPECT_EQ(work.unique_write.value, 1000 * 132);
  EXPECT_EQ(work.blocks, 125);
  // Requested: the biases once per warp of two pools.
  EXPECT_EQ(work.traffic.global_load.value, 1000 * (32 + 8 * 256) + 500 * 4 * 512);
  EXPECT_EQ(work.traffic.global_store.value, 1000 * 132);
}

TEST(Traffic, TenMillionTokensAreDeclaredWithoutOverflow) {
  const Work work = find_kernel("simt", "pool")->work(pool_of(2'500'000));
  EXPECT_EQ(work.unique_write.value, 330'000'000);
  EXPECT_EQ(work.blocks, 312'500);
}

}  // namespace
}  // namespace indexpool::kernels
