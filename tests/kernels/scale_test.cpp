// Ten million tokens: a few blocks of the whole grid, over buffers of which only what they touch
// becomes resident. Row offsets pass 2^31, page offsets 2^32.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t tokens = 10'000'000, pools = tokens / 4, states = 64, head_dim = 128;
constexpr std::int64_t row_bytes = 2 * head_dim, pools_per_block = 8;

class TenMillionTokens : public testing::Test {
 protected:
  TenMillionTokens() : shape_(make_shape("vllm_fp8", head_dim, 4)), ape_(random_ape(shape_, 1)) {
    args_.shape = shape_;
    args_.job_count = pools;
    args_.cache.states_per_page = states;
    args_.cache.page_stride = page_layout(shape_, states).page_bytes();
  }

  // Pages scattered over 1.5 million: 13 GB of addresses.
  static std::int64_t page_of(std::int64_t pool) { return pool / states * 37 % 1'500'000; }
  static std::int64_t slot_of(std::int64_t pool) { return page_of(pool) * states + pool % states; }

  template <class T>
  void put(std::byte* buffer, std::int64_t byte, const T* from, std::int64_t bytes) {
    target_->upload(buffer + byte, from, bytes);
  }

  void fill_block(std::int64_t block, std::byte* keys, std::byte* gates, std::byte* jobs) {
    for (std::int64_t p = block * pools_per_block;
         p < std::min(pools, (block + 1) * pools_per_block); ++p) {
      const PoolJob job = {slot_of(p), 4 * p + 3, 4 * p, 0, 0};
      put(jobs, p * std::int64_t{sizeof job}, &job, sizeof job);
      const Rows rows = random_rows(shape_, 4, static_cast<std::uint64_t>(p));
      for (std::int64_t j = 0; j < 4; ++j) {
        const auto index = static_cast<std::size_t>(j);
        const auto key = host_store(DType::bf16, rows.keys[index]);
        const auto gate = host_store(DType::bf16, rows.gate_scores[index]);
        put(keys, (4 * p + j) * row_bytes, key.data(), row_bytes);
        put(gates, (4 * p + j) * row_bytes, gate.data(), row_bytes);
      }
    }
  }

  void check_pool(std::int64_t p) {
    const Rows rows = random_rows(shape_, 4, static_cast<std::uint64_t>(p));
    const HostPool expected = host_pool(shape_.mode, rows.keys, rows.gate_scores, ape_);
    const std::byte* const page = args_.cache.pages + page_of(p) * args_.cache.page_stride;
    const std::int64_t state = p % states;
    std::vector<std::uint8_t> codes(head_dim);
    float scale = 0;
    target_->download(codes.data(), page + state * head_dim, head_dim);
    target_->download(&scale, page + states * head_dim + 4 * state, sizeof scale);
    ASSERT_EQ(codes, expected.stored) << "pool " << p;
    ASSERT_EQ(scale, expected.scale) << "pool " << p;
  }

  Shape shape_;
  std::vector<Head> ape_;
  PoolArgs args_;
  std::unique_ptr<Target> target_;
};

TEST_F(TenMillionTokens, SampledBlocksEqualThePlainLoops) {
  sim::simt::Options options;
  const std::int64_t last = pools / pools_per_block - 1;
  options.blocks = {0, 104'857, 104'858, 209'716, last};  // around row offsets 2^30 * k
  const auto blocks = options.blocks;
  target_ = make_simt_target(options);
  std::byte* const keys = target_->allocate("keys", tokens * row_bytes, {}, true);
  std::byte* const gates = target_->allocate("gate scores", tokens * row_bytes, {}, true);
  std::byte* const jobs =
      target_->allocate("jobs", pools * std::int64_t{sizeof(PoolJob)}, {}, true);
  args_.cache.pages = target_->allocate("pages", 1'500'000 * args_.cache.page_stride, {}, true);
  std::byte* const ape = target_->allocate("ape", 4 * head_dim * 4, {}, true);
  for (std::size_t j = 0; j < 4; ++j)
    put(ape, static_cast<std::int64_t>(j) * head_dim * 4, ape_[j].data(), head_dim * 4);
  for (const std::int64_t block : blocks) fill_block(block, keys, gates, jobs);
  args_.keys = keys;
  args_.gate_scores = gates;
  args_.ape = reinterpret_cast<const float*>(ape);
  args_.jobs = reinterpret_cast<const PoolJob*>(jobs);
  find_kernel("simt", args_).launch(args_, target_->context());
  for (const std::int64_t block : blocks)
    for (std::int64_t p = block * pools_per_block; p < (block + 1) * pools_per_block; ++p)
      check_pool(p);
  EXPECT_EQ(target_->check_guards(), "");
}

}  // namespace
}  // namespace indexpool::kernels
