// Behind gigabytes of nothing the kernels give what they give near by.
#include <iostream>

#include <gtest/gtest.h>

#include "indexpool/verify/far_target.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

Problem small_problem(const std::string& mode) {
  Problem problem;
  problem.mode = mode;
  problem.indexer = {3, 32, 8, 4, true};
  problem.lengths = {29, 7};
  problem.states_per_page = 4;
  problem.schedule = {17, 9, 2};
  return problem;
}

class Far : public testing::TestWithParam<std::string> {};

TEST_P(Far, EveryCheckHoldsThatHoldsNearBy) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    Problem problem = small_problem(GetParam());
    problem.seed = seed;
    Options options;
    options.all_lane_orders = false;
    const auto near = verify_problem(problem, options);
    options.far = true;
    const auto far = verify_problem(problem, options);
    ASSERT_EQ(near.size(), far.size());
    for (std::size_t i = 0; i < near.size(); ++i) {
      EXPECT_EQ(far[i].verdict, near[i].verdict)
          << far[i].op << ": " << far[i].verdict.reason << "\n  " << far[i].repeat;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Far,
                         testing::Values("hf_f32", "hf_bf16", "hf_f16", "bf16", "vllm_fp8",
                                         "sglang_fp8", "int8"),
                         [](const auto& tested) { return tested.param; });

kernels::PagedCache a_cache(kernels::Target& target) {
  return {target.allocate("cache pages", 1024, std::byte{0xff}), 256, 4};
}

TEST(FarTarget, IndicesPassThirtyTwoBitsWhereTheBytesDo) {
  const auto target = make_far_target(kernels::make_simt_target());
  std::vector<kernels::PoolJob> jobs{{3, 7, 0, 1, 0}};
  kernels::PoolArgs args;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.shape.config.index_head_dim = 32;
  std::byte* const keys = target->allocate("keys", 1024, std::byte{0xff});
  args.keys = keys;
  args.gate_scores = target->allocate("gate_scores", 1024, std::byte{0xff});
  args.tail = {target->allocate("tail ring", 2048, std::byte{0xff}), 512, 4};
  args.cache = a_cache(*target);
  std::byte* const pages = args.cache.pages;
  std::byte* const buffer = target->allocate("pool jobs", sizeof(kernels::PoolJob), std::byte{0});
  target->upload(buffer, jobs.data(), sizeof(kernels::PoolJob));
  args.jobs = reinterpret_cast<const kernels::PoolJob*>(buffer);
  args.job_count = 1;
  const auto moved = std::get<kernels::PoolArgs>(target->placed(args));
  const kernels::PoolJob& job = moved.jobs[moved.job_count - 1];
  EXPECT_GT(job.last_row * 64, std::int64_t{1} << 32);
  EXPECT_GT(job.first_position, std::int64_t{1} << 32);
  EXPECT_GT(moved.job_count * 4, std::int64_t{1} << 31);  // threads
  // The same bytes by another way.
  EXPECT_EQ(static_cast<const std::byte*>(moved.keys) + job.last_row * 64, keys + 7 * 64);
  EXPECT_EQ(moved.cache.pages + job.slot / 4 * 256, pages);
  EXPECT_EQ(job.slot % 4, 3);
}

}  // namespace
}  // namespace indexpool::verify
