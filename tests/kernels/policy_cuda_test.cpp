// The GPU against the executor: the kernels of the published forms promise the same bytes on both,
// tensor cores included.
#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

#include "policy_bench.hpp"

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

void expect_the_executors_bytes(const PolicyShape& shape, Target& device) {
  const PoolingInputs inputs = policy_inputs(shape, 11);
  RunOptions options;
  options.executor.count = false;
  options.executor.matrix = device.compute_capability() >= 90 ? sim::simt::MatrixModel::sm90
                                                              : sim::simt::MatrixModel::sm80;
  EXPECT_TRUE(run_policy(inputs, device, options) == run_policy(inputs, options))
      << shape.policy << ", " << shape.mode << ", " << shape.index_kpool << " vectors of "
      << shape.head_dim;
}

TEST(PolicyCuda, EveryRuleHasTheExecutorsBytes) {
  std::string reason;
  const auto device = cuda_or_reason(reason);
  if (device == nullptr) GTEST_SKIP() << reason;
  PolicyShape shape;
  shape.absent = true;
  shape.groups = 33;
  for (const char* policy : {"plain", "composite", "additive", "gated", "tfidf", "kpool"}) {
    shape.policy = policy;
    for (const char* mode : {"f32", "f16", "bf16"}) {
      shape.mode = mode;
      for (const std::int64_t head_dim : {32, 128, 256, 512, 1024, 2048}) {
        shape.head_dim = head_dim;
        for (const std::int64_t index_kpool : {1, 3, 4, 8, 16}) {
          shape.index_kpool = index_kpool;
          shape.heads = index_kpool;
          expect_the_executors_bytes(shape, *device);
        }
      }
    }
  }
}

TEST(PolicyCuda, EveryFormatHasTheExecutorsBytes) {
  std::string reason;
  const auto device = cuda_or_reason(reason);
  if (device == nullptr) GTEST_SKIP() << reason;
  PolicyShape shape;
  shape.policy = "csa";
  shape.index_kpool = 8;
  for (const NumericMode& mode : pooling_modes()) {
    shape.mode = mode.name;
    for (const std::int64_t head_dim : {64, 256, 512, 1024, 2048}) {
      shape.head_dim = head_dim;
      for (const std::int64_t rope_dims : {std::int64_t{-1}, std::int64_t{24}, head_dim}) {
        shape.norm_rope_dims = rope_dims;
        expect_the_executors_bytes(shape, *device);
      }
    }
  }
}

}  // namespace
}  // namespace indexpool::kernels
