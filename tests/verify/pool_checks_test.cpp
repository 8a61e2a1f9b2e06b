// Errors planted in correct outputs must be found, each by the check that is there for it.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

// A case's cache as the kernels wrote it, and everything needed to judge it.
struct Bench {
  Case test_case;
  Timeline timeline;
  CacheLayout layout;
  std::vector<Tensor> staged;
  CacheOutput output;
  reference::Pooled expected;
  std::vector<char> all;

  explicit Bench(const Problem& problem) : test_case(make_case(problem)) {
    const IndexerInputs& in = test_case.inputs;
    timeline = plan_timeline(in, problem.schedule, test_case.prefill, problem.seed);
    layout = lay_out_cache(in, timeline.positions, problem.states_per_page,
                           kernels::ring_size(in.config.index_kpool, problem.schedule.drafts),
                           problem.seed);
    staged = {stage_rows(in.keys, timeline, problem.seed, 1),
              stage_rows(in.gate_scores, timeline, problem.seed, 2)};
    const auto target = kernels::make_simt_target();
    StageContext context{*target, make_lookup({}), false};
    output = run_cache(context, cache_inputs());
    expected = reference::pool(in);
    all.assign(output.by_append.size(), 1);
  }
  CacheInputs cache_inputs() const {
    return {test_case.inputs, timeline, layout, staged[0], staged[1]};
  }
  StoredPools stored() const { return read_stored(test_case.inputs, layout, output.cache); }
  Check scale() const { return check_pool_scale(test_case.inputs, stored(), expected, all); }
  Check quantiser() const {
    return check_pool_quantiser(test_case.inputs, stored(), expected, all);
  }
  Check checksum() const {
    return check_checksum(test_case.inputs, stored(), output.checksums,
                          mean_before_rounding(test_case.inputs), all);
  }
  Check untouched() const { return check_cache_untouched(layout, output); }
  Check tail() const { return check_tail(cache_inputs(), output.tail); }
  std::byte& code(std::int64_t sequence, std::int64_t pool, std::int64_t channel) {
    return output.cache[static_cast<std::size_t>(layout.code_offset(sequence, pool) + channel)];
  }
};

Problem problem_of(const char* mode) {
  Problem problem;
  problem.mode = mode;
  problem.indexer = {2, 32, 16, 4, true};
  problem.lengths = {21, 10};
  problem.states_per_page = 2;
  problem.schedule = {13, 6, 2};
  return problem;
}

void expect_failed(const Check& check, const std::string& words) {
  EXPECT_EQ(check.status, Status::failed) << check.name;
  EXPECT_GT(check.violations, 0) << check.name;
  EXPECT_NE(check.reason.find(words), std::string::npos) << check.reason;
}

TEST(PoolChecks, CorrectOutputsPassAll) {
  const Bench bench(problem_of("vllm_fp8"));
  for (const Check& check :
       {bench.scale(), bench.quantiser(), bench.checksum(), bench.untouched(), bench.tail()}) {
    EXPECT_EQ(check.status, Status::passed) << check.name << ": " << check.reason;
    EXPECT_GT(check.compared, 0) << check.name;
  }
}

TEST(PoolChecks, ACodeTwoStepsOffFailsTheQuantiserAndTheChecksum) {
  Bench bench(problem_of("vllm_fp8"));
  std::byte& code = bench.code(1, 1, 7);
  code = static_cast<std::byte>(std::to_integer<int>(code) ^ 2);
  expect_failed(bench.quantiser(), "sequence 1, pool 1, channel 7");
  expect_failed(bench.checksum(), "sequence 1, pool 1");
}

// The plain sum does not see a permutation; the weighted sum does.
TEST(PoolChecks, SwappedCodesFailTheWeightedChecksum) {
  Bench bench(problem_of("vllm_fp8"));
  ASSERT_NE(bench.code(0, 2, 3), bench.code(0, 2, 11));
  std::swap(bench.code(0, 2, 3), bench.code(0, 2, 11));
  const Check check = bench.checksum();
  expect_failed(check, "weighted exact sum");
  EXPECT_EQ(check.violations, 1);
}

// A scale that changed after the kernel's sums were taken, whatever the scale check thinks of it.
TEST(PoolChecks, AScaleOneUlpOffFailsTheChecksum) {
  for (const char* mode : {"vllm_fp8", "sglang_fp8", "int8"}) {
    Bench bench(problem_of(mode));
    bench.output.cache[static_cast<std::size_t>(bench.layout.scale_offset(1, 1))] ^= std::byte{1};
    const Check check = bench.checksum();
    expect_failed(check, "sequence 1, pool 1: exact sum");
    EXPECT_EQ(check.violations, 1) << mode;
  }
}

TEST(PoolChecks, ABitOfAnElementFailsTheChecksumWhereNothingIsQuantised) {
  for (const char* mode : {"bf16", "hf_bf16", "hf_f16", "hf_f32"}) {
    Bench bench(problem_of(mode));
    EXPECT_EQ(bench.checksum().status, Status::passed) << mode << ": " << bench.checksum().reason;
    bench.output.cache[static_cast<std::size_t>(bench.layout.code_offset(1, 1) + 18)] ^=
        std::byte{1};
    const Check check = bench.checksum();
    expect_failed(check, "sequence 1, pool 1: exact sum");
    EXPECT_EQ(check.violations, 2) << mode;
  }
}

TEST(PoolChecks, SwappedElementsFailTheWeightedChecksum) {
  for (const char* mode : {"bf16", "hf_bf16", "hf_f16", "hf_f32"}) {
    Bench bench(problem_of(mode));
    std::byte* const row = bench.output.cache.data() + bench.layout.code_offset(0, 2);
    const std::int64_t width = bench.layout.code_bytes() / bench.layout.head_dim;
    ASSERT_FALSE(std::equal(row + 3 * width, row + 4 * width, row + 11 * width)) << mode;
    std::swap_ranges(row + 3 * width, row + 4 * width, row + 11 * width);
    const Check check = bench.checksum();
    expect_failed(check, "weighted exact sum");
    EXPECT_EQ(check.violations, 1) << mode;
  }
}

TEST(PoolChecks, ADoubledScaleFailsTheScaleCheck) {
  for (const char* mode : {"vllm_fp8", "sglang_fp8", "int8"}) {
    Bench bench(problem_of(mode));
    std::byte* at = bench.output.cache.data() + bench.layout.scale_offset(0, 4);
    store_element(DType::f32, at, 0, 2 * load_element(DType::f32, at, 0));
    expect_failed(bench.scale(), "sequence 0, pool 4");
  }
}

TEST(PoolChecks, AnUnwrittenPoolFailsScaleAndQuantiser) {
  Bench bench(problem_of("vllm_fp8"));
  std::fill_n(&bench.code(0, 0, 0), bench.layout.code_bytes(), poison);
  std::fill_n(bench.output.cache.data() + bench.layout.scale_offset(0, 0), 4, poison);
  expect_failed(bench.scale(), "sequence 0, pool 0");
  expect_failed(bench.quantiser(), "sequence 0, pool 0");
}

TEST(PoolChecks, AWrongSumBeforeRoundingFailsTheChecksum) {
  Bench bench(problem_of("vllm_fp8"));
  bench.output.checksums[3].sum += 1e-4f;
  expect_failed(bench.checksum(), "sum");
}

RC_GTEST_PROP(PoolChecks, AnyByteOutsideThePoolsIsNoticed, (std::uint32_t where)) {
  Bench bench(problem_of("vllm_fp8"));
  std::size_t at = where % bench.output.cache.size();
  while (bench.output.written[at] != 0) at = (at + 1) % bench.output.cache.size();
  bench.output.cache[at] = std::byte{0};
  RC_ASSERT(bench.untouched().violations == 1);
}

RC_GTEST_PROP(PoolChecks, AnyByteOfTheTailIsNoticed, (std::uint32_t where)) {
  Bench bench(problem_of("bf16"));
  std::byte& byte = bench.output.tail[where % bench.output.tail.size()];
  byte ^= std::byte{1};
  RC_ASSERT(bench.tail().violations == 1);
}

TEST(PoolChecks, AnUnquantisedValueBesideItsEnclosureFailsTheBound) {
  Bench bench(problem_of("hf_f32"));
  std::byte* at = bench.output.cache.data() + bench.layout.code_offset(0, 1);
  const double value = load_element(DType::f32, at, 9);
  store_element(DType::f32, at, 9, value * (1 + 1e-5) + 1e-6);
  expect_failed(check_pool_bound(bench.test_case.inputs, bench.stored(), bench.expected, bench.all),
                "sequence 0, pool 1, channel 9");
}

TEST(PoolChecks, WeightsThatDoNotSumToOneFailTheWeightSum) {
  Problem problem = problem_of("hf_f32");
  problem.fill = "normal";
  Bench bench(problem);
  IndexerInputs ones = bench.test_case.inputs;
  for (std::int64_t i = 0; i < ones.keys.size(); ++i) ones.keys.set(i, 1);
  const auto expected = reference::pool(ones);
  StoredPools stored = bench.stored();
  stored.codes.assign(stored.codes.size(), 1.0);
  std::vector<kernels::PoolChecksum> sums(bench.output.checksums.size(), {32, 16.5f, 0, 0});
  EXPECT_EQ(check_weight_sum(ones, stored, sums, expected, bench.all).status, Status::passed);
  sums[2].sum = 32 * (1 - 2e-6f);
  expect_failed(check_weight_sum(ones, stored, sums, expected, bench.all), "pool 2, all keys 1");
}

TEST(PoolChecks, AllZeroPoolsAreUntrusted) {
  Problem problem = problem_of("bf16");
  Bench bench(problem);
  IndexerInputs zero = bench.test_case.inputs;
  zero.keys = Tensor(zero.keys.dtype(), zero.keys.shape());
  StoredPools stored = bench.stored();
  stored.codes.assign(stored.codes.size(), 0.0);
  const Check check = check_pool_bound(zero, stored, reference::pool(zero), bench.all);
  EXPECT_EQ(check.status, Status::untrusted);
  EXPECT_NE(check.reason.find("zero"), std::string::npos) << check.reason;
}

}  // namespace
}  // namespace indexpool::verify
