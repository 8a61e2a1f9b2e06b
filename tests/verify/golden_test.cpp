// Every golden case, whatever its shape, through the reference and through the kernels.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(INDEXPOOL_TEST_DATA "/golden")) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Case golden(const std::string& name) {
  return read_case(std::filesystem::path(INDEXPOOL_TEST_DATA "/golden") / (name + ".safetensors"));
}

void expect_passed(const std::vector<Record>& records) {
  for (const Record& record : records) {
    EXPECT_EQ(to_string(record.verdict.status), "passed")
        << record.op << " by " << record.implementation << ": " << record.verdict.reason;
  }
}

bool has_op(const std::vector<Record>& records, Op op) {
  return std::ranges::any_of(records, [&](const Record& r) { return r.op == to_string(op); });
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, ReferenceAgrees) {
  const Case test_case = golden(GetParam());
  Options options;
  options.target = "reference";
  const auto records = verify_case(test_case, options);
  expect_passed(records);
  EXPECT_TRUE(has_op(records, Op::topk));
  EXPECT_EQ(has_op(records, Op::project), test_case.projections.present());
}

TEST_P(Golden, KernelsAgree) {
  const Case test_case = golden(GetParam());
  Options options;
  options.all_lane_orders = test_case.inputs.rows() < 100;
  const auto records = verify_case(test_case, options);
  expect_passed(records);
  EXPECT_TRUE(has_op(records, Op::pool));
  EXPECT_TRUE(has_op(records, Op::logits));
  EXPECT_TRUE(has_op(records, Op::topk));
  EXPECT_EQ(has_op(records, Op::append), test_case.prefill < test_case.padded_length);
  EXPECT_EQ(has_op(records, Op::quantize_query), test_case.inputs.mode.quantised());
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(golden_files()),
                         [](const auto& tested) { return tested.param; });

TEST(Golden, ThereAreSeventeen) { EXPECT_EQ(golden_files().size(), 17u); }

}  // namespace
}  // namespace indexpool::verify
