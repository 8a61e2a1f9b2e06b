#include "indexpool/reports/attachments.hpp"

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

constexpr const char* rules = R"([
 {"mutant": "a", "class": "scale", "ours": "noticed", "allclose": "noticed", "overlap": "-"},
 {"mutant": "b", "class": "scale", "ours": "noticed", "allclose": "let through", "overlap": "-"},
 {"mutant": "c", "class": "order", "ours": "let through", "allclose": "-", "overlap": "noticed"}
])";

std::vector<std::string> texts(const std::vector<Cell>& row) {
  std::vector<std::string> out;
  for (const Cell& cell : row) out.push_back(cell.text);
  return out;
}
using Texts = std::vector<std::string>;

std::string refusal(Attachment (*read)(std::string_view, std::string_view), const char* text) {
  try {
    read(text, "x.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Attachments, CountWhatEachRuleNoticedOfTheMutantsItJudges) {
  const Attachment made = rules_attachment(rules, "rules.json");
  ASSERT_EQ(made.table.columns.size(), 4u);
  EXPECT_EQ(made.table.columns[2].heading, "allclose");
  ASSERT_EQ(made.table.rows.size(), 3u);
  EXPECT_EQ(texts(made.table.rows[0]), (Texts{"scale", "2 of 2", "1 of 2", ""}));
  EXPECT_EQ(texts(made.table.rows[1]), (Texts{"order", "0 of 1", "", "1 of 1"}));
  EXPECT_EQ(texts(made.table.rows[2]), (Texts{"all", "2 of 3", "1 of 2", "1 of 1"}));
}

TEST(Attachments, KillScoresLeaveOutEquivalentMutants) {
  const Attachment made = mutants_attachment(
      R"([{"class": "all", "mutants": 200, "equivalent": 2, "killed_by_its_check": 198,
           "killed": 198, "percent": 100}])",
      "scores.json");
  ASSERT_EQ(made.table.rows.size(), 1u);
  EXPECT_EQ(texts(made.table.rows[0]), (Texts{"all", "198", "198", "100 %"}));
}

TEST(Attachments, FaultsBecomeAMatrixOfLayers) {
  const Attachment made = faults_attachment(
      R"([{"site": "codes", "model": "bit", "layer": "layered", "trials": 10, "visible": 8,
           "detected": 8},
          {"site": "codes", "model": "bit", "layer": "page", "trials": 10, "visible": 8,
           "detected": 6},
          {"site": "keys", "model": "bit", "layer": "layered", "trials": 10, "visible": 0,
           "detected": 0}])",
      "coverage.json");
  EXPECT_EQ(made.table.columns[4].heading, "page");
  EXPECT_EQ(made.table.columns[5].heading, "any layer");
  ASSERT_EQ(made.table.rows.size(), 2u);
  EXPECT_EQ(texts(made.table.rows[0]), (Texts{"codes", "bit", "10", "8", "75 %", "100 %"}));
  EXPECT_EQ(texts(made.table.rows[1]), (Texts{"keys", "bit", "10", "0", "", ""}));
}

TEST(Attachments, WrongFilesAreNamedWithTheirPlace) {
  EXPECT_NE(refusal(rules_attachment, "[]").find("x.json"), std::string::npos);
  EXPECT_NE(refusal(rules_attachment, R"([{"mutant": "a", "class": "b"}])").find("/0: no \"ours\""),
            std::string::npos);
  EXPECT_NE(refusal(rules_attachment, R"([{"mutant": "a", "class": "b", "ours": "seen"}])")
                .find("/0/ours"),
            std::string::npos);
  EXPECT_NE(refusal(faults_attachment, R"([{"site": "a"}])").find("x.json"), std::string::npos);
  EXPECT_NE(refusal(faults_attachment, R"([{"site": "a", "model": "b", "layer": "c", "trials": 1,
                                            "visible": 2, "detected": 0}])")
                .find("/0/visible"),
            std::string::npos);
  EXPECT_NE(refusal(mutants_attachment, "{").find("x.json"), std::string::npos);
}

TEST(Attachments, AreSectionsOfTheReport) {
  ReportInput input = sample_input(passed_records());
  input.attachments = {rules_attachment(rules, "rules.json")};
  const std::string page = html(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_NE(page.find("What rules of public projects notice"), std::string::npos);
  EXPECT_NE(page.find("1 of 2"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::reports
