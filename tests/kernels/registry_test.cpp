#include <set>
#include <string>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {
namespace {

TEST(Registry, NamesAreUniqueOnTheirTarget) {
  std::set<std::string> seen;
  for (const Kernel& kernel : kernels())
    EXPECT_TRUE(seen.insert(std::string(kernel.target) + "/" + std::string(kernel.name)).second)
        << kernel.name;
}

TEST(Registry, RefusalsAreListed) {
  PoolArgs args;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.shape.config.index_head_dim = 96;
  try {
    find_kernel("simt", args);
    FAIL() << "head dim 96 was taken";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("index_head_dim 96"), std::string::npos) << text;
    EXPECT_NE(text.find("seed_tail"), std::string::npos) << text;
  }
}

TEST(Registry, UnknownTargetIsNamed) {
  EXPECT_THROW(find_kernel("tpu", PoolArgs{}), ConfigError);
  EXPECT_EQ(find_kernel("tpu", "pool"), nullptr);
}

TEST(Registry, SmallRingsAndOddStridesAreRefused) {
  AppendArgs args;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.cache.page_stride = 8448;
  args.tail.ring = 3;
  args.tail.block_stride = 4096;
  const Kernel* append = find_kernel("simt", "append");
  ASSERT_NE(append, nullptr);
  EXPECT_TRUE(append->unsupported(args).has_value());
  args.tail.ring = 4;
  EXPECT_FALSE(append->unsupported(args).has_value());
  args.tail.block_stride = 2 * 4 * 256 + 16;
  EXPECT_TRUE(append->unsupported(args).has_value());
}

TEST(Registry, BuffersThatBreakVectorAccessAreRefused) {
  alignas(32) std::byte memory[32]{};
  AppendArgs args;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.cache.page_stride = 8448;
  args.tail.block_stride = 4096;
  const Kernel* append = find_kernel("simt", "append");
  ASSERT_NE(append, nullptr);
  for (std::byte** pointer : {&args.cache.pages, &args.tail.base}) {
    *pointer = memory + 8;
    const auto reason = append->unsupported(args);
    ASSERT_TRUE(reason.has_value());
    EXPECT_NE(reason->find("8 bytes past a multiple of 16"), std::string::npos) << *reason;
    *pointer = memory + 16;
    EXPECT_FALSE(append->unsupported(args).has_value());
  }
}

TEST(CudaTarget, WithoutADeviceOrToolkitItSaysWhy) {
  try {
    const auto target = make_cuda_target();
    EXPECT_EQ(target->name(), "cuda");
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDA"), std::string::npos);
  }
}

}  // namespace
}  // namespace indexpool::kernels
