#include "indexpool/reports/hierarchy.hpp"

#include <gtest/gtest.h>

#include "indexpool/reports/report.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

CostTerm term(const char* name, double micros) {
  return {name, Seconds(micros * 1e-6), {}, {}, "", ""};
}

// logits moves 35.7 MB and is limited by HBM, topk by its latencies; pool is no part of a step.
std::vector<Record> records() {
  std::vector<Record> all = passed_records();
  for (Record& record : all) {
    record.values["predicted_l2_bytes"] = 64e6;
    record.values["predicted_shared_bytes"] = 2e6;
    record.values["predicted_matrix_flop"] = 0;
  }
  all[3].values["predicted_matrix_flop"] = 2.15e9;
  all[3].values["predicted_warp_instructions"] = 1.25e6;
  all[3].prediction->terms = {term("launch", 2.5), term("hbm", 20.1),   term("l2", 11),
                              term("shared", 1),   term("matrix", 7.4), term("issue", 3.5)};
  all[4].prediction->terms = {term("launch", 2.5), term("hbm", 0.6), term("latency", 181)};
  all[4].prediction->bound_by = "latency";
  return all;
}

TEST(Hierarchy, EdgesCarryTheBytesAndTimesOfTheRecords) {
  const std::string dot = hierarchy_dot(records());
  for (const char* part :
       {"\"2 HBM\" -> \"2 L2\" [label=\" 35.7 MB \\n 20.1 µs \"",
        "\"2 L2\" -> \"2 shared\" [label=\" 64 MB \\n 11 µs \"",
        "\"2 shared\" -> \"2 registers\" [label=\" 2 MB \\n 1 µs \"",
        "\"2 registers\" -> \"2 matrix\" [label=\" 2.15 GFLOP \\n 7.4 µs \"",
        "\"2 registers\" -> \"2 issue\" [label=\" 1.25 M instructions \\n 3.5 µs \"",
        "<b>logits</b>", ">logits_mma<", "launch 2.5 µs"}) {
    EXPECT_TRUE(contains(dot, part)) << part << "\n" << dot;
  }
  EXPECT_FALSE(contains(dot, "<b>pool</b>"));
  EXPECT_FALSE(contains(dot, "\"3 registers\" -> \"3 matrix\"")) << "topk multiplies nothing";
  EXPECT_EQ(hierarchy_dot(records()), dot);
}

TEST(Hierarchy, TheLevelThatLimitsIsRedOrTheTermThatIsNoLevel) {
  const std::string dot = hierarchy_dot(records());
  const std::size_t edge = dot.find("\"2 HBM\" -> \"2 L2\"");
  EXPECT_TRUE(contains(dot.substr(edge, dot.find('\n', edge) - edge), "color=\"#c4302b\"")) << dot;
  const std::size_t other = dot.find("\"2 L2\" -> \"2 shared\"");
  EXPECT_FALSE(contains(dot.substr(other, dot.find('\n', other) - other), "#c4302b"));
  EXPECT_TRUE(contains(dot, "<font color=\"#c4302b\"><b>latency 181 µs</b></font>")) << dot;
}

TEST(Hierarchy, ShowsTheLongestContextOnly) {
  std::vector<Record> all = records(), shorter = records();
  for (Record& record : shorter) {
    record.values["predicted_tokens"] = 4096;
    record.prediction->hbm_bytes = Bytes(123);
    all.push_back(record);
  }
  EXPECT_EQ(hierarchy_dot(all), hierarchy_dot(records()));
}

TEST(Hierarchy, WithoutWorkThereIsNothingToShow) {
  EXPECT_EQ(hierarchy_dot({}), "");
  EXPECT_EQ(hierarchy_dot(passed_records()), "");
}

TEST(Hierarchy, DrawsWhateverTheNamesAndStandsInTheReport) {
  std::vector<Record> hostile = hostile_records();
  hostile[0].values["predicted_l2_bytes"] = 1;
  for (const auto& each : {records(), hostile}) {
    const std::string svg = svg_from_dot(hierarchy_dot(each));
    if (svg.empty() && svg_from_dot("digraph {}").empty()) GTEST_SKIP() << "no Graphviz";
    EXPECT_TRUE(contains(svg, "</svg>"));
    EXPECT_FALSE(contains(svg, "<script"));
    const std::string page = html(sample_input(each));
    EXPECT_EQ(markup_problem(page), "");
    EXPECT_TRUE(contains(page, "id=\"hierarchy\""));
  }
}

}  // namespace
}  // namespace indexpool::reports
