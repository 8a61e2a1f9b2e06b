// Plugins that use a GPU: the process they run in has its limits, and still a device.
#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

#include "plugins.hpp"

namespace indexpool::verify {
namespace {

class CudaPlugin : public testing::Test {
 protected:
  void SetUp() override {
    try {
      kernels::make_cuda_target();
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

Verdict logits_verdict(const std::string& name, double seconds) {
  PluginLimits limits;
  limits.seconds = seconds;
  const Plugin plugin = open_plugin(plugin_path(name), limits);
  Problem problem = small_problem();
  problem.mode = "hf_f32";
  return record_of(check_plugin_problem(plugin, problem, {}), "logits").verdict;
}

TEST_F(CudaPlugin, PassesAsAnyOther) {
  const Verdict verdict = logits_verdict("cuda_good", 60);
  EXPECT_EQ(verdict.status, Status::passed) << verdict.reason;
}

TEST_F(CudaPlugin, TellsOfAnIllegalAddress) {
  const Verdict verdict = logits_verdict("cuda_broken", 60);
  EXPECT_EQ(verdict.status, Status::error);
  EXPECT_TRUE(contains(verdict.reason, "returned error code 2")) << verdict.reason;
  EXPECT_TRUE(contains(verdict.reason, "illegal memory access")) << verdict.reason;
}

TEST_F(CudaPlugin, IsKilledWithItsKernelWhenItNeverEnds) {
  const Verdict verdict = logits_verdict("cuda_endless", 10);
  EXPECT_EQ(verdict.status, Status::error);
  EXPECT_TRUE(contains(verdict.reason, "still ran after 10 s")) << verdict.reason;
  EXPECT_EQ(logits_verdict("cuda_good", 60).status, Status::passed);
}

}  // namespace
}  // namespace indexpool::verify
