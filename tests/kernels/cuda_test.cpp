// The GPU against the executor: the pooling kernels promise the same bytes on both.
#include <cstring>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

std::unique_ptr<Target> cuda_or_reason(std::string& reason) {
  try {
    return make_cuda_target();
  } catch (const EnvironmentError& error) {
    reason = error.what();
    return nullptr;
  }
}

struct Outcome {
  std::vector<std::byte> pages;
  std::vector<PoolChecksum> prefill, decode;
};

// Two requests: a prefill that ends inside a pool, then a decode step of two tokens each.
Outcome run(const Shape& shape, std::unique_ptr<Target> target) {
  const std::int64_t kpool = shape.config.index_kpool, length = 11 * kpool + kpool / 2;
  Workbench::Sizes sizes;
  sizes.states_per_page = 5;
  sizes.tail_blocks = 2;
  sizes.pages = 8;
  sizes.ring = ring_size(kpool, 1);
  const auto table_a = random_block_table(4, 0, 1), table_b = random_block_table(4, 4, 2);
  Workbench bench(shape, random_ape(shape, 3), sizes, std::move(target));
  Outcome outcome;
  const StepRequest prefill[] = {{0, length, 0, 0, table_a}, {0, length, length, 1, table_b}};
  bench.prefill(random_rows(shape, 2 * length, 4), prefill);
  outcome.prefill = bench.checksums;
  const StepRequest decode[] = {{length, 2, 0, 0, table_a}, {length, 2, 2, 1, table_b}};
  bench.append(random_rows(shape, 4, 5), decode);
  outcome.decode = bench.checksums;
  outcome.pages = bench.pages();
  return outcome;
}

bool same_bytes(const std::vector<PoolChecksum>& a, const std::vector<PoolChecksum>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

TEST(Cuda, PoolsHaveTheExecutorsBytes) {
  std::string reason;
  if (cuda_or_reason(reason) == nullptr) GTEST_SKIP() << reason;
  for (const std::string& mode : mode_names()) {
    for (const std::int64_t head_dim : {32, 64, 128}) {
      for (const std::int64_t kpool : {1, 3, 4, 16}) {
        const Shape shape = make_shape(mode, head_dim, kpool);
        const Outcome gpu = run(shape, make_cuda_target()), cpu = run(shape, make_simt_target());
        EXPECT_EQ(gpu.pages, cpu.pages) << mode << " " << head_dim << " " << kpool;
        EXPECT_TRUE(same_bytes(gpu.prefill, cpu.prefill)) << mode << head_dim << " " << kpool;
        EXPECT_TRUE(same_bytes(gpu.decode, cpu.decode)) << mode << head_dim << " " << kpool;
      }
    }
  }
}

TEST(Cuda, PoisonNeverLandsOnWhatWasUploaded) {
  std::string reason;
  const auto target = cuda_or_reason(reason);
  if (target == nullptr) GTEST_SKIP() << reason;
  const std::vector<std::byte> sent(1 << 16, std::byte{0x11});
  for (int round = 0; round < 2000; ++round) {
    std::byte* const buffer = target->allocate("sent", 1 << 16, std::byte{0x7f});
    target->upload(buffer, sent.data(), 1 << 16);
    std::vector<std::byte> read(sent.size());
    target->download(read.data(), buffer, 1 << 16);
    ASSERT_EQ(read, sent) << "round " << round;
    target->release(buffer);
  }
}

TEST(Cuda, WritesOutsideABufferAreFound) {
  std::string reason;
  const auto target = cuda_or_reason(reason);
  if (target == nullptr) GTEST_SKIP() << reason;
  std::byte* const buffer = target->allocate("small", 100, std::byte{0x7f});
  EXPECT_EQ(target->check_guards(), "");
  std::byte read{};
  target->download(&read, buffer + 99, 1);
  EXPECT_EQ(read, std::byte{0x7f});
  EXPECT_THROW(target->upload(buffer + 1, buffer, 100), InternalError);
  // A seed_tail that is told of a ring one entry too far writes behind it.
  const Shape shape = make_shape("bf16", 64, 4);
  std::byte* const rows = target->allocate("rows", 128, std::byte{1});
  std::byte* const jobs = target->allocate("jobs", sizeof(TailJob), std::byte{0});
  const TailJob job = {0, 0, 8};
  target->upload(jobs, &job, sizeof job);
  SeedTailArgs args;
  args.shape = shape;
  args.keys = args.gate_scores = rows;
  args.jobs = reinterpret_cast<const TailJob*>(jobs);
  args.job_count = 1;
  args.tail.base = target->allocate("ring", 2 * 4 * 128, std::byte{0x7f});
  args.tail.block_stride = 2 * 4 * 128;
  find_kernel("cuda", args).launch(args, target->context());
  EXPECT_NE(target->check_guards().find("'ring'"), std::string::npos);
}

TEST(Cuda, ATimedBodyTakesTime) {
  std::string reason;
  const auto target = cuda_or_reason(reason);
  if (target == nullptr) GTEST_SKIP() << reason;
  std::byte* const buffer = target->allocate("buffer", 1 << 20, std::byte{0});
  std::vector<std::byte> host(1 << 20);
  const auto measured =
      target->measure([&] { target->upload(buffer, host.data(), std::ssize(host)); }, 5, true);
  ASSERT_TRUE(measured.has_value());
  EXPECT_GT(measured->median.value, 0);
  EXPECT_LE(measured->p10.value, measured->p90.value);
  EXPECT_EQ(measured->cache, "cold");
}

}  // namespace
}  // namespace indexpool::kernels
