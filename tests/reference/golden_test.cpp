// Every recorded case against the reference, within the bounds it derives.
#include "indexpool/reference/golden.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "indexpool/model/case.hpp"

namespace indexpool::reference {
namespace {

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> result;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(INDEXPOOL_TEST_DATA) + "/golden")) {
    if (entry.path().extension() == ".safetensors") result.push_back(entry.path());
  }
  std::ranges::sort(result);
  return result;
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, LiesWithinTheEnclosures) {
  const auto test_case = read_case(GetParam());
  for (const auto& step : compare_expected(test_case)) {
    EXPECT_EQ(step.outside, 0) << step.step << ": " << step.first_fault;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.stem().string(); });

}  // namespace
}  // namespace indexpool::reference
