// Every recorded case against the reference, within the bounds it derives.
#include "indexpool/reference/golden.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "indexpool/model/case.hpp"

namespace indexpool::reference {
namespace {

std::vector<std::filesystem::path> cases(const std::string& prefix = "") {
  std::vector<std::filesystem::path> result;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(INDEXPOOL_TEST_DATA) + "/golden")) {
    const auto& path = entry.path();
    if (path.extension() != ".safetensors") continue;
    if (path.stem().string().starts_with(prefix)) result.push_back(path);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Case golden_case(const std::string& name) {
  return read_case(std::string(INDEXPOOL_TEST_DATA) + "/golden/" + name + ".safetensors");
}

std::map<std::string, Agreement> by_step(const Case& test_case) {
  std::map<std::string, Agreement> result;
  for (auto& step : compare_expected(test_case)) result[step.step] = step;
  return result;
}

TEST(GoldenCases, AreAllThere) { EXPECT_EQ(cases().size(), 17U); }

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, LiesWithinTheEnclosures) {
  const auto test_case = read_case(GetParam());
  const auto steps = by_step(test_case);
  for (const auto& [name, step] : steps) {
    EXPECT_GT(step.compared, 0) << name;
    EXPECT_EQ(step.outside, 0) << name << ": " << step.first_fault;
  }
  EXPECT_EQ(steps.contains("queries"), test_case.projections.present());
  EXPECT_EQ(steps.contains("pool_codes"), test_case.expected.contains("pool_rows"));
  EXPECT_EQ(steps.contains("pooled"), test_case.expected.contains("pooled"));
  EXPECT_EQ(steps.contains("logits"), test_case.expected.contains("logits"));
}

// Cases named after their ties exist to have undecidable rows; elsewhere rows where the plateau of
// zero logits reaches the k-th place, or two logits meet, are rare.
TEST_P(Golden, SelectedSetsAreTheReferencesWhereTheEnclosuresDecide) {
  const auto test_case = read_case(GetParam());
  const auto selection = by_step(test_case).at("selection");
  EXPECT_LE(selection.unequal, selection.compared - selection.decidable);
  const bool ties = test_case.name.find("ties") != std::string::npos;
  const double share =
      static_cast<double>(selection.decidable) / static_cast<double>(selection.compared);
  EXPECT_GT(share, ties ? 0.3 : 0.97);
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.stem().string(); });

class GoldenFp8 : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenFp8, ScalesAndCodesEqualTheReferences) {
  const auto test_case = read_case(GetParam());
  ASSERT_TRUE(test_case.inputs.mode.quantised());
  const auto steps = by_step(test_case);
  for (const char* name : {"pooled", "pool_scales", "pool_codes", "query_scales", "query_codes"}) {
    EXPECT_EQ(steps.at(name).unequal, 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenFp8, testing::ValuesIn(cases("fp8_")),
                         [](const auto& test) { return test.param.stem().string(); });

// The tester tested: one altered answer is found, in its step.
std::int64_t outside(const Case& test_case, const std::string& step) {
  return by_step(test_case).at(step).outside;
}

TEST(GoldenComparison, FindsOneAlteredCode) {
  auto test_case = golden_case("fp8_small");
  auto& codes = test_case.expected.at("q_codes") = test_case.expected.at("q_codes").clone();
  codes.as<std::uint8_t>()[77] ^= 1;
  EXPECT_EQ(outside(test_case, "query_codes"), 1);
}

TEST(GoldenComparison, FindsOneScaleOfTwice) {
  auto test_case = golden_case("fp8_small");
  auto& scales = test_case.expected.at("q_scales") = test_case.expected.at("q_scales").clone();
  scales.set(3, 2 * scales.at(3));
  EXPECT_EQ(outside(test_case, "query_scales"), 1);
}

TEST(GoldenComparison, FindsOnePooledKeyOffByABf16Ulp) {
  auto test_case = golden_case("glm53_bf16");
  auto& pooled = test_case.expected.at("pooled") = test_case.expected.at("pooled").clone();
  pooled.as<std::uint16_t>()[1000] += 1;
  EXPECT_EQ(outside(test_case, "pooled"), 1);
}

TEST(GoldenComparison, FindsOneLogitOffByAThousandthOfItself) {
  auto test_case = golden_case("glm53_bf16");
  auto& logit = test_case.expected.at("logits") = test_case.expected.at("logits").clone();
  const std::int64_t last_row = (logit.dim(0) - 1) * logit.dim(1);
  logit.set(last_row, logit.at(last_row) * 1.001);
  EXPECT_EQ(outside(test_case, "logits"), 1);
}

TEST(GoldenComparison, FindsAPoolThatWasLeftOut) {
  auto test_case = golden_case("prefill_f32");
  auto& rows = test_case.expected.at("selection") = test_case.expected.at("selection").clone();
  const auto width = static_cast<std::size_t>(rows.dim(1));
  const auto row = rows.as<std::int32_t>().subspan(511 * width, width);
  std::vector<bool> taken(128, false);
  for (const auto token : row) {
    if (token >= 0) taken[static_cast<std::size_t>(token) / 4] = true;
  }
  const auto missing = std::find(taken.begin(), taken.end(), false) - taken.begin();
  for (std::size_t i = 0; i < width; ++i) {
    if (row[i] / 4 == row[0] / 4 && i != 0 && row[i] >= 0) {
      row[i] = static_cast<std::int32_t>(missing * 4 + row[i] % 4);
    }
  }
  row[0] = static_cast<std::int32_t>(missing * 4 + row[0] % 4);
  EXPECT_EQ(outside(test_case, "selection"), 1);
}

}  // namespace
}  // namespace indexpool::reference
