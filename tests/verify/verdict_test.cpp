#include "indexpool/verify/verdict.hpp"

#include <gtest/gtest.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/execute.hpp"

namespace indexpool::verify {
namespace {

Check make_check(const char* name, Status status, const char* reason = "") {
  Check check;
  check.name = name;
  check.status = status;
  check.reason = reason;
  check.compared = 1;
  return check;
}

TEST(Verdict, TakesTheWorstStatusAndItsReason) {
  const Verdict verdict = assemble({make_check("bound", Status::passed),
                                    make_check("rerun", Status::untrusted, "vacuous"),
                                    make_check("scale", Status::failed, "pool 3")});
  EXPECT_EQ(verdict.status, Status::failed);
  EXPECT_EQ(verdict.reason, "scale: pool 3");
  EXPECT_EQ(verdict.checks.size(), 3u);
}

TEST(Verdict, UntrustedIsNeverPassed) {
  const Verdict verdict = assemble(
      {make_check("bound", Status::passed), make_check("selection", Status::untrusted, "2 of 9")});
  EXPECT_EQ(verdict.status, Status::untrusted);
}

TEST(Verdict, ACheckThatComparedNothingDidNotPass) {
  Check empty = make_check("scale", Status::passed);
  empty.compared = 0;
  const Verdict both = assemble({empty, make_check("rerun", Status::passed)});
  EXPECT_EQ(both.status, Status::passed);
  EXPECT_EQ(both.reason, "");
  EXPECT_EQ(both.checks[0].status, Status::skipped);
  EXPECT_EQ(assemble({empty}).status, Status::skipped);
  EXPECT_EQ(assemble({}).status, Status::skipped);
}

TEST(Verdict, TrafficThatDiffersByOneByteFails) {
  Traffic declared;
  declared.global_load = Bytes(96);
  Traffic counted = declared;
  EXPECT_EQ(check_traffic(declared, counted).status, Status::passed);
  counted.global_load = Bytes(97);
  const Check check = check_traffic(declared, counted);
  EXPECT_EQ(check.status, Status::failed);
  EXPECT_NE(check.reason.find("96 declared, 97 counted"), std::string::npos) << check.reason;
}

TEST(Verdict, GuardsReportFails) {
  EXPECT_EQ(check_guards("").status, Status::passed);
  EXPECT_EQ(check_guards("cache pages: 3 bytes before").status, Status::failed);
}

TEST(Verdict, OneByteBetweenRunsFails) {
  const std::vector<std::int32_t> a{1, 2, 3}, b{1, 2, 4};
  EXPECT_EQ(check_same_bytes("rerun", "selection", bytes_of(a), bytes_of(a)).status,
            Status::passed);
  const Check check = check_same_bytes("rerun", "selection", bytes_of(a), bytes_of(b));
  EXPECT_EQ(check.violations, 1);
  EXPECT_NE(check.reason.find("selection, byte 8"), std::string::npos) << check.reason;
}

// A kernel that answers differently every time, to see that reruns notice.
int times_run = 0;
TEST(Executor, OneNanIsAsGoodAsAnotherAndIntegersStay) {
  const std::vector<std::uint32_t> gpu{0x7fffffffu, 1,           0xfffffffbu, 2,
                                       0x7f800000u, 0xffc00000u, 3,           4};
  std::vector<std::uint32_t> cpu{0xffc00000u, 1, 0xfffffffbu, 2, 0x7f800000u, 0x7fc00001u, 3, 4};
  const auto same = [&] {
    return with_one_nan({"checksums", bytes_of(gpu), 2, 4}) ==
           with_one_nan({"checksums", bytes_of(cpu), 2, 4});
  };
  EXPECT_TRUE(same());
  cpu[2] = 0xfffffffau;  // -6 instead of -5: a NaN if it were a float
  EXPECT_FALSE(same());
  cpu[2] = gpu[2];
  cpu[4] = 0x7f800001u;  // infinity and NaN differ
  EXPECT_FALSE(same());
}

TEST(Verdict, AKernelThatForgetsWhatItDidFailsTheRerun) {
  const kernels::Kernel moody{"moody",
                              "moody",
                              [](const kernels::OpArgs& args) -> std::optional<std::string> {
                                if (std::holds_alternative<kernels::TopkArgs>(args))
                                  return std::nullopt;
                                return "it is moody";
                              },
                              [](const kernels::OpArgs& any, kernels::LaunchContext&) {
                                const auto& args = std::get<kernels::TopkArgs>(any);
                                const std::int64_t count =
                                    args.row_count * args.shape.config.selection_width();
                                for (std::int64_t i = 0; i < count; ++i)
                                  args.selection[i] = -1 - times_run;
                                ++times_run;
                              },
                              [](const kernels::OpArgs&) { return Work{}; },
                              nullptr};
  Options options;
  options.target = "moody";
  options.extra_kernels = {&moody, 1};
  Problem problem;
  problem.indexer = {1, 32, 8, 4, true};
  problem.lengths = {9};
  const auto records = verify_problem(problem, options);
  ASSERT_EQ(records.back().implementation, "moody");
  for (const Check& check : records.back().verdict.checks) {
    if (check.name == "rerun") {
      EXPECT_EQ(check.status, Status::failed);
    }
    if (check.name == "structure") {
      EXPECT_EQ(check.status, Status::failed);
    }
  }
  EXPECT_EQ(records.back().verdict.status, Status::failed);
  EXPECT_EQ(records.front().verdict.status, Status::passed) << records.front().verdict.reason;
}

TEST(Verdict, AnUnsupportedProblemSaysWhy) {
  Problem problem;
  problem.indexer = {1, 48, 8, 4, true};  // no instance for 48 channels
  problem.mode = "bf16";
  problem.lengths = {9};
  const auto records = verify_problem(problem, {});
  EXPECT_EQ(records.front().verdict.status, Status::unsupported);
  EXPECT_NE(records.front().verdict.reason.find("48"), std::string::npos);
  EXPECT_NE(records.front().repeat.find("--head-dim 48"), std::string::npos);
}

TEST(Verdict, ReferenceAloneIsHeldAgainstBinary128) {
  Problem problem;
  problem.indexer = {2, 32, 8, 4, true};
  problem.lengths = {21};
  Options options;
  options.target = "reference";
  for (const NumericMode& mode : numeric_modes()) {
    problem.mode = mode.name;
    const auto records = verify_problem(problem, options);
    EXPECT_EQ(records.size(), mode.quantised() ? 3u : 2u);
    for (const Record& record : records) {
      EXPECT_EQ(record.verdict.status, Status::passed)
          << mode.name << " " << record.op << ": " << record.verdict.reason;
      EXPECT_GT(record.verdict.checks.at(0).compared, 0);
    }
  }
}

}  // namespace
}  // namespace indexpool::verify
