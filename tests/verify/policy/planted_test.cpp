// The tester is tested: one wrong value in what a kernel of a published form wrote must fail the
// check that is named for it.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify::policy {
namespace {

using kernels::OpArgs;
using kernels::PolicyArgs;
using kernels::WeightedPoolArgs;

const WeightedPoolArgs* pooling(const OpArgs& args) {
  const auto* any = std::get_if<PolicyArgs>(&args);
  return any == nullptr ? nullptr : std::get_if<WeightedPoolArgs>(any);
}
float* weights_of(const OpArgs& args) {
  const auto* any = std::get_if<PolicyArgs>(&args);
  if (any == nullptr) return nullptr;
  if (const auto* a = std::get_if<kernels::AdditiveWeightsArgs>(any)) return a->pool_weights;
  if (const auto* a = std::get_if<kernels::GatedWeightsArgs>(any)) return a->pool_weights;
  if (const auto* a = std::get_if<kernels::TfidfWeightsArgs>(any)) return a->pool_weights;
  if (const auto* a = std::get_if<kernels::RoleWeightsArgs>(any)) return a->pool_weights;
  if (const auto* a = std::get_if<kernels::ChannelWeightsArgs>(any)) return a->pool_weights;
  return nullptr;
}

// What is done to an output after the correct launch.
void (*spoil_pool)(const WeightedPoolArgs& args) = nullptr;
void (*spoil_weights)(float* pool_weights) = nullptr;

std::optional<std::string> takes(const OpArgs& args) {
  const bool mine = spoil_pool != nullptr ? pooling(args) != nullptr : weights_of(args) != nullptr;
  return mine ? std::nullopt : std::optional<std::string>("it is not what is spoilt");
}
void launch_spoilt(const OpArgs& args, kernels::LaunchContext& context) {
  kernels::find_kernel("simt", args).launch(args, context);
  if (spoil_pool != nullptr) {
    spoil_pool(*pooling(args));
  } else {
    spoil_weights(weights_of(args));
  }
}
Work work_of(const OpArgs& args) { return kernels::find_kernel("simt", args).work(args); }

std::vector<Record> run_spoilt(const char* policy, const char* mode) {
  const kernels::Kernel spoilt{"spoilt", "spoilt", takes, launch_spoilt, work_of, nullptr};
  Options options;
  options.target = "spoilt";
  options.extra_kernels = {&spoilt, 1};
  const PolicyInfo& info = find_policy(policy);
  Problem problem;
  problem.policy = policy;
  problem.mode = mode;
  problem.indexer.index_kpool = info.index_kpool;
  problem.indexer.index_head_dim = 64;
  problem.indexer.index_n_heads = 2;
  problem.lengths = {22};
  return verify_policy(problem, options);
}

void expect_caught(const char* policy, const char* mode, Op op, const char* by) {
  bool seen = false;
  for (const Record& record : run_spoilt(policy, mode)) {
    if (record.op != to_string(op)) continue;
    seen = true;
    EXPECT_EQ(record.verdict.status, Status::failed) << record.case_name;
    const auto& checks = record.verdict.checks;
    const auto found = std::ranges::find(checks, std::string_view(by), &Check::name);
    ASSERT_NE(found, checks.end()) << record.case_name << " has no check " << by;
    EXPECT_EQ(found->status, Status::failed) << record.case_name << ": " << by << " did not see it";
  }
  EXPECT_TRUE(seen);
}
void expect_pool_caught(const char* policy, const char* mode, const char* by,
                        void (*spoil)(const WeightedPoolArgs&)) {
  spoil_pool = spoil;
  expect_caught(policy, mode, Op::pool, by);
  spoil_pool = nullptr;
}
void expect_weights_caught(const char* policy, const char* by, void (*spoil)(float*)) {
  spoil_weights = spoil;
  expect_caught(policy, "bf16", Op::pool_weights, by);
  spoil_weights = nullptr;
}

float* f32_row(const WeightedPoolArgs& args, std::int64_t group) {
  return reinterpret_cast<float*>(args.pooled) + group * args.grouped.head_dim;
}

TEST(PlantedPooling, AFewRoundingsTooManyAreSeen) {
  expect_pool_caught("plain", "f32", "bound",
                     [](const WeightedPoolArgs& args) { f32_row(args, 1)[3] *= 1 + 0x1p-18f; });
}
TEST(PlantedPooling, TwoGroupsExchangedAreSeen) {
  expect_pool_caught("mean", "f32", "bound", [](const WeightedPoolArgs& args) {
    std::swap_ranges(f32_row(args, 0), f32_row(args, 1), f32_row(args, 1));
  });
}
TEST(PlantedPooling, ASumWithoutItsDivisionIsSeen) {
  expect_pool_caught("additive", "f32", "bound", [](const WeightedPoolArgs& args) {
    float sum = 0;
    for (int i = 0; i < args.grouped.index_kpool; ++i) sum += args.pool_weights[i];
    for (int c = 0; c < args.grouped.head_dim; ++c) f32_row(args, 0)[c] *= sum;
  });
}
TEST(PlantedPooling, AVectorOutsideItsGroupsRangeIsSeen) {
  expect_pool_caught("composite", "f32", "convexity",
                     [](const WeightedPoolArgs& args) { f32_row(args, 2)[0] += 100; });
}
TEST(PlantedPooling, ARotationWithTheWrongSignIsSeen) {
  expect_pool_caught("csa", "f32", "bound", [](const WeightedPoolArgs& args) {
    float* row = f32_row(args, 2) + args.grouped.head_dim - args.rope_dims;
    for (int c = 0; c < args.rope_dims; c += 2) {
      const float cosine = args.rope[2 * args.rope_dims + c];
      const float sine = args.rope[2 * args.rope_dims + c + 1];
      // Back, and then the other way round.
      const float x = row[c] * cosine + row[c + 1] * sine;
      const float y = row[c + 1] * cosine - row[c] * sine;
      row[c] = x * cosine + y * sine;
      row[c + 1] = y * cosine - x * sine;
    }
  });
}
TEST(PlantedPooling, OneCodeOffByOneIsSeen) {
  for (const char* mode : {"int8", "fp8", "fp8_amax"}) {
    expect_pool_caught("gated", mode, "quantiser",
                       [](const WeightedPoolArgs& args) { args.pooled[5] ^= std::byte{1}; });
    expect_pool_caught("gated", mode, "checksum",
                       [](const WeightedPoolArgs& args) { args.pooled[5] ^= std::byte{1}; });
  }
}
TEST(PlantedPooling, AScaleOfANeighbourIsSeen) {
  expect_pool_caught("tfidf", "int8", "scale",
                     [](const WeightedPoolArgs& args) { args.scales[0] = args.scales[1] * 1.5f; });
}
TEST(PlantedPooling, AMeanThatWasNotReportedIsSeen) {
  expect_pool_caught("additive", "bf16", "fallback",
                     [](const WeightedPoolArgs& args) { args.fallbacks[1] = 1; });
}
TEST(PlantedPooling, AStaleChecksumIsSeen) {
  expect_pool_caught("last", "bf16", "checksum",
                     [](const WeightedPoolArgs& args) { args.checksums[2] = args.checksums[1]; });
}

TEST(PlantedWeights, OneWeightAThousandthOffIsSeenInEveryRule) {
  for (const char* policy : {"composite", "additive", "additive_raw", "gated", "tfidf", "csa"}) {
    // The last of the first set: csa's first group has no vectors of a window before.
    expect_weights_caught(policy, "bound", [](float* pool_weights) {
      float* largest = std::max_element(pool_weights, pool_weights + 4);
      *largest = *largest == 0 ? 0.001f : *largest * 1.001f;
    });
  }
}
TEST(PlantedWeights, ANegativeWeightIsSeenWhereNoneMayBe) {
  expect_weights_caught("tfidf", "weight_range",
                        [](float* pool_weights) { pool_weights[1] = -0.25f; });
}
TEST(PlantedWeights, TwoWeightsExchangedAreSeen) {
  expect_weights_caught("gated", "bound",
                        [](float* pool_weights) { std::swap(pool_weights[0], pool_weights[1]); });
}

}  // namespace
}  // namespace indexpool::verify::policy
