#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

// A small unquantised case with the reference's own logits.
struct Bench {
  Case test_case;
  std::int64_t stride = 12;
  LogitBounds bounds;
  std::vector<float> logits;

  explicit Bench(const char* fill) {
    Problem problem;
    problem.mode = "bf16";
    problem.indexer = {2, 32, 16, 4, true};
    problem.lengths = {22, 7};
    problem.fill = fill;
    test_case = make_case(problem);
    const IndexerInputs& in = test_case.inputs;
    const reference::Pooled pooled = reference::pool(in);
    Operands operands;
    for (std::int64_t i = 0; i < in.queries.size(); ++i)
      operands.queries.push_back(in.queries.at(i));
    operands.pools.pools = pooled.rotated.shape[0];
    operands.pools.head_dim = 32;
    operands.pools.codes = pooled.rotated.value;
    bounds = logit_bounds(in, operands, reference::f32_any_order());
    logits.assign(static_cast<std::size_t>(in.rows() * stride), std::bit_cast<float>(0xffffffffu));
    std::int64_t row = 0;
    for (const auto& query : query_rows(in)) {
      const auto& own = bounds.sequences[static_cast<std::size_t>(query.request)];
      for (std::int64_t p = 0; p < (query.position + 1) / 4; ++p) {
        at(row, p) = static_cast<float>(
            own.value[static_cast<std::size_t>(query.position * own.shape[1] + p)]);
      }
      ++row;
    }
  }
  float& at(std::int64_t row, std::int64_t pool) {
    return logits[static_cast<std::size_t>(row * stride + pool)];
  }
  Check bound(bool about_ties = false) const {
    return check_logit_bound(test_case.inputs, bounds, logits, stride, about_ties);
  }
  Check untouched() const { return check_logits_untouched(test_case.inputs, logits, stride); }
};

TEST(LogitChecks, TheReferencesOwnPass) {
  const Bench bench("normal");
  EXPECT_EQ(bench.bound().status, Status::passed) << bench.bound().reason;
  EXPECT_GT(bench.bound().compared, 40);
  EXPECT_EQ(bench.untouched().status, Status::passed);
}

TEST(LogitChecks, ALogitBesideItsEnclosureFailsAndIsNamed) {
  Bench bench("normal");
  bench.at(15, 2) += 1e-4f;
  const Check check = bench.bound();
  EXPECT_EQ(check.violations, 1);
  EXPECT_NE(check.reason.find("sequence 0, token 15, pool 2"), std::string::npos) << check.reason;
}

TEST(LogitChecks, ALogitThatWasNotWrittenFails) {
  Bench bench("normal");
  bench.at(25, 0) = std::nanf("");
  EXPECT_EQ(bench.bound().violations, 1);
}

TEST(LogitChecks, ALogitOfAPoolInProgressIsNoticed) {
  Bench bench("normal");
  bench.at(6, 1) = 0.5f;  // token 6 sees pool 0 only
  const Check check = bench.untouched();
  EXPECT_EQ(check.violations, 1);
  EXPECT_NE(check.reason.find("token 6, column 1"), std::string::npos) << check.reason;
}

TEST(LogitChecks, AllZeroIsUntrustedUnlessTheFillWantsIt) {
  const Bench bench("all_zero_logits");
  EXPECT_EQ(bench.bound(false).status, Status::untrusted);
  EXPECT_EQ(bench.bound(true).status, Status::passed);
}

TEST(LogitChecks, BoundsWiderThanTheLogitsAreUntrusted) {
  Bench bench("normal");
  for (auto& sequence : bench.bounds.sequences) {
    for (double& low : sequence.low) low -= 1e6;
  }
  EXPECT_EQ(bench.bound().status, Status::untrusted);
}

}  // namespace
}  // namespace indexpool::verify
