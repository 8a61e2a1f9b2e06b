// The backward kernels on shapes around the edges of lanes, pieces, warps and levels of sums.
#include <algorithm>
#include <bit>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "indexpool/kernels/backward/plan.hpp"
#include "indexpool/model/error.hpp"

#include "backward_bench.hpp"

namespace indexpool::verify::policy {
namespace {

bool divided_by_little(const BackwardShape& shape) {
  return shape.weight_scale == 1e-30 &&
         find_policy(shape.policy).normalisation == Normalisation::division;
}
// What does not hold of the kernels' answers; empty: everything does.
std::string objection(const BackwardShape& shape, const BackwardCase& of) {
  const auto target = kernels::make_simt_target({});
  const BackwardOutput found = run_on(*target, of);
  auto checks = check_gradients(of.inputs, of.weights, of.grad_pooled, found);
  checks.push_back(check_clipping(found, run_on(*target, of, true)));
  std::string text = found.guards;
  for (const Check& check : checks) {
    const bool compared = check.compared > 0 || of.inputs.groups.empty();
    // Divided by sums next to nothing, a gradient may overflow, and with it all sums that it is in.
    const bool overflow = check.status == Status::untrusted && divided_by_little(shape);
    if ((check.status != Status::passed && !overflow) || !compared)
      text += check.name + ": " + check.reason + "; ";
  }
  if (found.run.declared != found.run.counted) text += "traffic is not what was declared; ";
  if (text.empty()) return text;
  return shape.policy + ", " + shape.mode + ", " + std::to_string(shape.index_kpool) +
         " vectors of " + std::to_string(shape.head_dim) + ", " +
         std::to_string(of.inputs.group_count()) + " groups: " + text;
}

std::string objection(const BackwardShape& shape) { return objection(shape, backward_case(shape)); }

RC_GTEST_PROP(BackwardKernels, EveryShapeIsCertifiedAndMovesWhatItDeclares, ()) {
  BackwardShape shape;
  shape.policy = *rc::gen::elementOf(
      std::vector<std::string>(std::begin(backward_policies), std::end(backward_policies)));
  const bool windows = shape.policy == "csa";
  shape.mode = *rc::gen::element<std::string>("f32", "f16", "bf16");
  shape.head_dim = *rc::gen::element<std::int64_t>(32, 64, 128, 256, 512, 1024, 2048);
  shape.index_kpool = *rc::gen::inRange<std::int64_t>(1, 17);
  if (windows) shape.index_kpool = std::max<std::int64_t>(2, shape.index_kpool / 2 * 2);
  if (shape.policy == "composite") shape.heads = *rc::gen::inRange<std::int64_t>(1, 5);
  if (shape.policy == "gated") shape.heads = *rc::gen::inRange<std::int64_t>(1, 17);
  const auto most = std::max<std::int64_t>(1, 8192 / shape.head_dim / shape.heads);
  const bool roles = shape.policy == "composite" || shape.policy == "gated";
  const std::int64_t groups = *rc::gen::inRange<std::int64_t>(0, most + 1);
  shape.tokens = roles ? groups : groups * shape.index_kpool / (windows ? 2 : 1);
  shape.seed = *rc::gen::arbitrary<std::uint64_t>();
  shape.absent = !windows && *rc::gen::arbitrary<bool>();
  shape.weight_scale = *rc::gen::element(1.0, 1e-30, 1e-41);  // the last one pools the mean
  RC_ASSERT(objection(shape) == "");
}

TEST(BackwardKernels, GroupsAroundAWarpAndABlockAreCertified) {
  for (const char* policy : {"kpool_weights", "tfidf"}) {
    for (const std::int64_t groups : {0, 1, 7, 8, 9, 31, 32, 33, 65}) {
      BackwardShape shape;
      shape.policy = policy;
      shape.head_dim = 32;
      shape.index_kpool = 3;
      shape.tokens = groups * 3;
      EXPECT_EQ(objection(shape), "");
    }
  }
}

// exp(-x^2 / 2) x^2 is 0 where binary32 does not hold x^2, not 0 times infinity.
TEST(BackwardKernels, ADistanceWhoseSquareOverflowsHasNoGradient) {
  BackwardShape shape;
  shape.policy = "additive";
  BackwardCase of = backward_case(shape);
  auto& terms = std::get<AdditiveTerms>(of.inputs.weights);
  for (std::int64_t k = 0; k < terms.distances.size(); ++k) {
    terms.distances.set(k, 0x1p100);
    terms.ages.set(k, 0x1p127);
  }
  terms.tau = 0x1p-20F;  // ages / tau overflows too
  EXPECT_EQ(objection(shape, of), "");
  const auto target = kernels::make_simt_target({});
  const BackwardOutput found = run_on(*target, of);
  EXPECT_EQ(found.terms[3], 0);
  EXPECT_EQ(found.terms[4], 0);
}
TEST(BackwardKernels, ADistanceWhoseSquareIsSubnormalIsCertifiedOverANarrowWidth) {
  BackwardShape shape;
  shape.policy = "additive";
  BackwardCase of = backward_case(shape);
  auto& terms = std::get<AdditiveTerms>(of.inputs.weights);
  for (std::int64_t k = 0; k < terms.distances.size(); ++k) {
    terms.distances.set(k, 1.7 * 0x1p-100 * static_cast<double>(k % 7 + 1));
    terms.ages.set(k, 0x1.8p-148);
  }
  terms.sigma = 0x1p-30F, terms.tau = 0x1.6p-20F;
  EXPECT_EQ(objection(shape, of), "");
}
TEST(BackwardKernels, ZeroVectorsAndQueriesHaveNoCosineAndPassNothingOn) {
  for (const char* policy : {"additive", "additive_raw", "tfidf"}) {
    BackwardShape shape;
    shape.policy = policy;
    BackwardCase of = backward_case(shape);
    for (std::int64_t c = 0; c < 2 * shape.head_dim; ++c) of.inputs.vectors.set(c, 0);
    auto* additive = std::get_if<AdditiveTerms>(&of.inputs.weights);
    Tensor& queries =
        additive ? additive->queries : std::get<AccessTerms>(of.inputs.weights).queries;
    for (std::int64_t c = 0; c < shape.head_dim; ++c) queries.set(shape.head_dim + c, 0);
    EXPECT_EQ(objection(shape, of), "");
    const auto target = kernels::make_simt_target({});
    const BackwardOutput found = run_on(*target, of);
    EXPECT_EQ(found.cosines[0], 0);
    EXPECT_EQ(found.cosines[5], 0);
    EXPECT_NE(found.cosines[2], 0);
    EXPECT_EQ(found.vectors[3], found.held_vectors[3]);
  }
}

// The bound of a long sum in any order would admit a lost row; that of each row does not.
TEST(BackwardKernels, OneWarpsLostShareOfManyIsSeen) {
  for (const char* policy : {"additive", "tfidf"}) {
    BackwardShape shape;
    shape.policy = policy;
    shape.head_dim = 32;
    shape.tokens = 4 * 6000;
    const BackwardCase of = backward_case(shape);
    const auto target = kernels::make_simt_target({});
    BackwardOutput found = run_on(*target, of);
    const auto failed = [&] {
      std::string names;
      for (const Check& check : check_gradients(of.inputs, of.weights, of.grad_pooled, found))
        if (check.status != Status::passed) names += check.name + " ";
      return names;
    };
    EXPECT_EQ(failed(), "") << policy;
    const auto width = static_cast<std::size_t>(kernels::weight_terms(of.inputs));
    for (std::size_t t = 0; t < width; ++t) {
      found.terms[t] -= found.term_rows[5 * width + t];
      found.term_rows[5 * width + t] = 0;
    }
    EXPECT_EQ(failed(), "bound_term_rows ") << policy;
  }
}

// Sums of whole numbers are exact in any order: what is missed, twice or misplaced shows.
RC_GTEST_PROP(BackwardKernels, SumsHaveEveryRowOnce, ()) {
  const auto width = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 5, 12, 31, 33, 64, 127, 128, 132);
  const auto sums = *rc::gen::inRange<std::int32_t>(1, 6);
  const auto rows = *rc::gen::inRange<std::int64_t>(0, 1200);
  std::vector<std::int32_t> of;
  for (std::int64_t j = 0; j < rows; ++j)
    of.push_back(static_cast<std::int32_t>(*rc::gen::inRange(0, 100) * sums / 130));
  std::vector<float> values, expected(static_cast<std::size_t>(sums * width));
  for (std::int64_t k = 0; k < rows * width; ++k) {
    values.push_back(static_cast<float>(k % 97 - 40));
    expected[static_cast<std::size_t>(of[static_cast<std::size_t>(k / width)] * width +
                                      k % width)] += values.back();
  }
  const auto target = kernels::make_simt_target({});
  StageContext context{*target, make_lookup({}), false, {}};
  const auto found = sum_rows_of(context, values, width, of, sums);
  RC_ASSERT(found.values == expected);
  RC_ASSERT(found.run.declared == found.run.counted);
}

TEST(BackwardKernels, LongSumsGoThroughLevelsOfShortSegments) {
  const std::vector<std::int32_t> of(40000, 0);
  const auto levels = kernels::sum_levels(of, 2, 128);
  ASSERT_EQ(levels.size(), 4U);  // 40000 -> 2500 -> 157 -> 10 -> 1
  EXPECT_EQ(levels[0].segments(), 2500);
  EXPECT_EQ(levels.back().segments(), 2);
  EXPECT_EQ(levels.back().first, (std::vector<std::int64_t>{0, 10, 10}));
  EXPECT_THROW(kernels::sum_levels(std::vector<std::int32_t>{2}, 2, 4), InternalError);
}

TEST(BackwardKernels, WhatTheyDoNotTakeIsRefusedInWords) {
  kernels::PoolBackwardArgs pool;
  pool.grouped.head_dim = 48;
  const kernels::OpArgs args = kernels::BackwardArgs(pool);
  const auto* kernel = kernels::find_kernel("simt", "pool_backward");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->unsupported(args), "head_dim is 48; it must be a power of two from 32 to 2048");
  kernels::SumRowsArgs sums;
  EXPECT_EQ(kernels::find_kernel("simt", "sum_rows")->unsupported(kernels::BackwardArgs(sums)),
            "rows of 0 values; they must have some");
  EXPECT_TRUE(kernel->unsupported(kernels::BackwardArgs(sums)).has_value());
}

TEST(BackwardKernels, AGateWithoutAllHeadsOfATokenIsRefused) {
  BackwardShape shape;
  BackwardCase of = backward_case(shape);
  of.inputs.groups.pop_back();
  of.weights.resize(of.weights.size() - 4);
  of.grad_pooled.resize(of.grad_pooled.size() - 64);
  const auto target = kernels::make_simt_target({});
  EXPECT_THROW(run_on(*target, of), ConfigError);
}

// The same bytes as the executor, where there is a device.
TEST(BackwardCuda, EveryRuleHasTheExecutorsBytes) {
  std::unique_ptr<kernels::Target> device;
  try {
    device = kernels::make_cuda_target();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  const auto executor = kernels::make_simt_target({});
  for (const char* policy : backward_policies) {
    for (const char* mode : {"f32", "f16", "bf16"}) {
      for (const std::int64_t head_dim : {32, 128, 256, 512, 1024, 2048}) {
        for (const std::int64_t index_kpool : {2, 4, 8, 16}) {
          BackwardShape shape{policy, mode, index_kpool, head_dim};
          shape.absent = std::string(policy) != "csa";
          const BackwardCase of = backward_case(shape);
          const BackwardOutput here = run_on(*executor, of), there = run_on(*device, of);
          for (const auto member :
               {&BackwardOutput::held_vectors, &BackwardOutput::slot_weights,
                &BackwardOutput::pool_weights, &BackwardOutput::norm_weight,
                &BackwardOutput::pool_matrix, &BackwardOutput::gate_scores,
                &BackwardOutput::position_bias, &BackwardOutput::vectors,
                &BackwardOutput::hidden_states, &BackwardOutput::gate_vectors,
                &BackwardOutput::gate_hidden, &BackwardOutput::gate_bias, &BackwardOutput::queries,
                &BackwardOutput::cosines, &BackwardOutput::terms, &BackwardOutput::position_terms,
                &BackwardOutput::term_rows, &BackwardOutput::position_rows}) {
            EXPECT_TRUE(std::ranges::equal(here.*member, there.*member,
                                           [](float a, float b) {
                                             return std::bit_cast<std::uint32_t>(a) ==
                                                    std::bit_cast<std::uint32_t>(b);
                                           }))
                << policy << ", " << mode << ", " << index_kpool << " vectors of " << head_dim;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace indexpool::verify::policy
