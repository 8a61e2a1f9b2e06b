// Feedback of attention into access counts: equal to the reference in any lane order, traffic as
// declared.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/kernels/attention/exceeds_mean.cuh"
#include "indexpool/kernels/attention/token_slots.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"

#include "attention_bench.hpp"

namespace indexpool::kernels {
namespace {

struct FeedbackProblem {
  FeedbackInputs inputs;
  AccessTerms terms;
};
// `attended`: the share of vectors with any mass; tokens from 0 to `tokens` - 1, each of any number
// of vectors; counts from 0 to 2, some at most_accesses.
FeedbackProblem random_feedback(std::int64_t groups, std::int64_t m, std::int64_t tokens,
                                double attended, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> mass;
  std::uniform_real_distribution<double> uniform;
  const auto up_to = [&](std::int64_t count) {
    return static_cast<double>(std::uniform_int_distribution<std::int64_t>(0, count)(random));
  };
  FeedbackProblem problem;
  problem.inputs = {Tensor(DType::f32, {groups, m}), Tensor(DType::i32, {groups, m})};
  problem.terms.accesses = Tensor(DType::i32, {groups, m});
  problem.terms.groups_accessed = Tensor(DType::i32, {groups, m});
  problem.terms.all_groups = groups;
  const std::int64_t slots = groups * m;
  std::vector<double> masses(static_cast<std::size_t>(slots));
  for (double& x : masses) x = uniform(random) < attended ? mass(random) : 0.0;
  double sum = 0;
  for (const double x : masses) sum += x;
  for (std::int64_t i = 0; i < slots; ++i) {
    problem.inputs.attention_mass.set(i, masses[static_cast<std::size_t>(i)] / std::max(sum, 1.0));
    problem.inputs.tokens.set(i, up_to(tokens - 1));
    problem.terms.accesses.set(i, uniform(random) < 0.1 ? double{most_accesses} : up_to(2));
  }
  return problem;
}

std::vector<std::int32_t> words(const Tensor& tensor) {
  const auto values = tensor.as<std::int32_t>();
  return {values.begin(), values.end()};
}
FeedbackRun expected(const FeedbackProblem& problem) {
  const auto next = reference::attention_feedback(problem.inputs, problem.terms);
  return {words(next.accesses), words(next.groups_accessed)};
}

RC_GTEST_PROP(FeedbackKernels, CountAsTheReferenceInAnyLaneOrder, ()) {
  const auto problem = random_feedback(
      *rc::gen::inRange(0, 200), *rc::gen::inRange(1, 9), *rc::gen::element(1, 3, 40, 1000),
      *rc::gen::element(0.0, 0.02, 0.5, 1.0), *rc::gen::arbitrary<std::uint64_t>());
  const FeedbackRun run = run_feedback(problem.inputs, problem.terms);
  RC_ASSERT(run == expected(problem));
  for (const auto& order : lane_orders())
    RC_ASSERT(run_feedback(problem.inputs, problem.terms, order) == run);
}

TEST(FeedbackKernels, WarpsBlocksAndSharesOfTheCountMayEndAnywhere) {
  // Up to 256 blocks count 1024 slots at a time; more slots than that take another step.
  for (const std::int64_t slots :
       {1, 3, 4, 5, 31, 33, 255, 256, 257, 1023, 1024, 1025, 4099, 262144, 262149}) {
    const auto problem = random_feedback(slots, 1, slots, 0.5, static_cast<std::uint64_t>(slots));
    EXPECT_TRUE(run_feedback(problem.inputs, problem.terms) == expected(problem)) << slots;
  }
}

TEST(FeedbackKernels, OneTokenMayHoldEverySlotOrEachItsOwn) {
  for (const std::int64_t tokens : {1, 100'000'000}) {
    const auto problem = random_feedback(90, 4, tokens, 0.3, 3);
    EXPECT_TRUE(run_feedback(problem.inputs, problem.terms) == expected(problem)) << tokens;
  }
}

FeedbackProblem worked(std::vector<double> mass, std::vector<int> tokens, std::int64_t m) {
  const std::int64_t groups = std::ssize(mass) / m;
  FeedbackProblem problem = random_feedback(groups, m, 1, 0, 1);
  for (std::int64_t i = 0; i < groups * m; ++i) {
    problem.inputs.attention_mass.set(i, mass[static_cast<std::size_t>(i)]);
    problem.inputs.tokens.set(i, tokens[static_cast<std::size_t>(i)]);
    problem.terms.accesses.set(i, 0);
  }
  return problem;
}

TEST(FeedbackKernels, TheMeanItselfIsNoAccess) {
  // Four attended to, mean 1/4; token 7 has accessed vectors in both groups, twice in the first.
  const auto problem = worked({0.375, 0.3125, 0, 0.25, 0.0625, 0}, {7, 7, -2, 3, 7, 9}, 3);
  const FeedbackRun run = run_feedback(problem.inputs, problem.terms);
  EXPECT_EQ(run.next_accesses, (std::vector<std::int32_t>{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(run.groups_accessed, (std::vector<std::int32_t>{1, 1, 0, 0, 1, 0}));
}

TEST(FeedbackKernels, MassTimesCountIsComparedWithoutARounding) {
  EXPECT_FALSE(simt::exceeds_mean(0.25f, 4));
  EXPECT_TRUE(simt::exceeds_mean(std::nextafter(0.25f, 1.0f), 4));
  EXPECT_FALSE(simt::exceeds_mean(0.0f, 5));
  EXPECT_FALSE(simt::exceeds_mean(-0.0f, 5));
  EXPECT_FALSE(simt::exceeds_mean(1.0f, 1));
  EXPECT_TRUE(simt::exceeds_mean(1.001f, 1));
  // In binary32 either product is 1: the numbers at both sides of 1 / (2^28 + 1).
  const auto many = (1u << 28) + 1;
  EXPECT_TRUE(simt::exceeds_mean(0x1p-28f, many));
  EXPECT_FALSE(simt::exceeds_mean(std::nextafter(0x1p-28f, 0.0f), many));
}
RC_GTEST_PROP(FeedbackKernels, AgreeWithBinary64AboutTheMean, ()) {
  // 24 bits times a count below 2^29 are exact in binary64.
  const auto attended = *rc::gen::inRange<std::uint32_t>(1, 1u << 29);
  float mass = static_cast<float>(1 / static_cast<double>(attended));
  for (int step = *rc::gen::inRange(0, 3); step > 0; --step) mass = std::nextafter(mass, 1.0f);
  for (int step = *rc::gen::inRange(0, 3); step > 0; --step) mass = std::nextafter(mass, 0.0f);
  RC_ASSERT(simt::exceeds_mean(mass, attended) == (static_cast<double>(mass) * attended > 1));
}

// What wrong kernels would answer.
enum class FeedbackFault { none, not_less, mean_of_all, beyond_the_most, slots_for_groups };
FeedbackRun answer_with(FeedbackFault fault, const FeedbackProblem& problem) {
  const auto mass = problem.inputs.attention_mass.as<float>();
  const TokenSlots lists = token_slots(problem.inputs.tokens.as<std::int32_t>());
  const std::int64_t m = problem.terms.accesses.dim(1);
  FeedbackRun run = {words(problem.terms.accesses), {}};
  run.groups_accessed.resize(run.next_accesses.size());
  double attended = 0;
  for (const float x : mass) attended += fault == FeedbackFault::mean_of_all || x > 0 ? 1 : 0;
  for (std::size_t i = 0; i < mass.size(); ++i) {
    const double product = mass[i] * attended;
    const bool accessed = product > 1 || (fault == FeedbackFault::not_less && product == 1);
    const bool room =
        fault == FeedbackFault::beyond_the_most || run.next_accesses[i] < most_accesses;
    run.next_accesses[i] += accessed && room ? 1 : 0;
  }
  const auto slot = [&](std::int32_t i) {
    return static_cast<std::size_t>(lists.slots[static_cast<std::size_t>(i)]);
  };
  for (std::size_t k = 0; k + 1 < lists.first.size(); ++k) {
    std::int32_t groups = 0;
    std::int64_t last = -1;
    for (std::int32_t i = lists.first[k]; i < lists.first[k + 1]; ++i) {
      if (run.next_accesses[slot(i)] == 0) continue;
      const auto group = static_cast<std::int64_t>(slot(i)) / m;
      groups += group != last || fault == FeedbackFault::slots_for_groups ? 1 : 0;
      last = group;
    }
    for (std::int32_t i = lists.first[k]; i < lists.first[k + 1]; ++i)
      run.groups_accessed[slot(i)] = groups;
  }
  return run;
}

TEST(FeedbackKernels, PlantedErrorsAreCaught) {
  auto problem = random_feedback(40, 4, 30, 0.5, 8);
  // 32 are attended to: 21 have the mean, one more, ten less.
  const auto mass = problem.inputs.attention_mass.as<float>();
  std::fill(mass.begin(), mass.end(), 0.0f);
  for (std::size_t i = 0; i < 64; ++i) mass[2 * i] = i % 3 == 0 ? 0.03125f : 0.0f;
  for (std::size_t i = 0; i < 10; ++i) mass[2 * i + 1] = 0.015625f;
  mass[0] = 0.0625f;
  problem.terms.accesses.set(0, most_accesses);
  const FeedbackRun run = run_feedback(problem.inputs, problem.terms);
  ASSERT_TRUE(run == expected(problem));
  EXPECT_TRUE(run == answer_with(FeedbackFault::none, problem));
  EXPECT_FALSE(run == answer_with(FeedbackFault::not_less, problem));
  EXPECT_FALSE(run == answer_with(FeedbackFault::mean_of_all, problem));
  EXPECT_FALSE(run == answer_with(FeedbackFault::beyond_the_most, problem));
  EXPECT_FALSE(run == answer_with(FeedbackFault::slots_for_groups, problem));
}

RC_GTEST_PROP(TokenSlots, ListEverySlotOnceAscendingWithinItsToken, ()) {
  const auto tokens = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(-5, 20));
  const TokenSlots lists = token_slots(tokens);
  RC_ASSERT(lists.first.front() == 0);
  RC_ASSERT(lists.first.back() == std::ssize(tokens));
  std::vector<std::int32_t> all = lists.slots;
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) RC_ASSERT(all[i] == static_cast<std::int32_t>(i));
  const auto token = [&](std::int32_t i) {
    return tokens[static_cast<std::size_t>(lists.slots[static_cast<std::size_t>(i)])];
  };
  for (std::int64_t k = 0; k < lists.tokens(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    RC_ASSERT(lists.first[at] < lists.first[at + 1]);
    if (k > 0) RC_ASSERT(token(lists.first[at] - 1) < token(lists.first[at]));
    for (std::int32_t i = lists.first[at] + 1; i < lists.first[at + 1]; ++i) {
      RC_ASSERT(token(i) == token(i - 1));
      RC_ASSERT(lists.slots[static_cast<std::size_t>(i)] >
                lists.slots[static_cast<std::size_t>(i - 1)]);
    }
  }
}

TEST(FeedbackKernels, ArgumentsThatDoNotFitAreRefusedInWords) {
  const auto refusal = [](const AttentionArgs& args) -> std::string {
    try {
      find_kernel("simt", args);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CountAttendedArgs count;
  EXPECT_EQ(refusal(count), "");
  count.slots = std::int64_t{1} << 31;
  EXPECT_NE(refusal(count).find("2147483648 slots"), std::string::npos);
  AttentionFeedbackArgs args;
  EXPECT_EQ(refusal(args), "");
  args.slots = 4, args.tokens = 5;
  EXPECT_NE(refusal(args).find("5 tokens hold 4 slots"), std::string::npos);
  args.tokens = 2, args.index_kpool = 0;
  EXPECT_NE(refusal(args).find("index_kpool is 0"), std::string::npos);
}

TEST(FeedbackKernels, ALaunchWithoutItsListsIsThatOfRegularOnes) {
  AttentionFeedbackArgs args;
  args.slots = 4 * 1000, args.tokens = 1000;
  const Kernel& kernel = find_kernel("simt", AttentionArgs(args));
  std::vector<std::int32_t> slots(4000), first(1001);
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(i);
  for (std::size_t k = 0; k < first.size(); ++k) first[k] = static_cast<std::int32_t>(4 * k);
  const Traffic assumed = kernel.work(AttentionArgs(args)).traffic;
  args.host_token_slots = slots.data(), args.host_first_slot = first.data();
  EXPECT_TRUE(kernel.work(AttentionArgs(args)).traffic == assumed);
}

}  // namespace
}  // namespace indexpool::kernels
