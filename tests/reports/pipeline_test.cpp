#include <gtest/gtest.h>

#include "indexpool/reports/report.hpp"

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Pipeline, EdgesCarryPredictedBytesAndNodesTheirShare) {
  const std::string dot = pipeline_dot(passed_records());
  EXPECT_TRUE(contains(dot, "\"inputs\" -> \"pool\" [label=\"keys, gate scores\\n537 MB\"]"))
      << dot;
  EXPECT_TRUE(contains(dot, "\"paged cache\" -> \"logits\"")) << dot;
  EXPECT_TRUE(contains(dot, "22.4 µs · 65.5 %")) << dot;  // of append, quantize_query, logits, topk
  EXPECT_FALSE(contains(dot, "331 µs ·")) << "pool is no part of a decode step";
}

TEST(Pipeline, WithoutPredictionsShowsWhatWasCounted) {
  std::vector<Record> records = passed_records();
  for (Record& record : records) {
    record.prediction.reset();
    record.values.clear();
  }
  const std::string dot = pipeline_dot(records);
  EXPECT_TRUE(contains(dot, "keys, gate scores\\n133 kB")) << dot;
  EXPECT_TRUE(contains(dot, "as counted")) << dot;
}

TEST(Pipeline, ProjectionsReplaceTheInputs) {
  std::vector<Record> records = passed_records();
  records.push_back(records.front());
  records.back().op = "project";
  const std::string dot = pipeline_dot(records);
  EXPECT_TRUE(contains(dot, "\"hidden states\" -> \"project\"")) << dot;
  EXPECT_FALSE(contains(dot, "\"inputs\"")) << dot;
}

TEST(Pipeline, DrawsWhateverTheNames) {
  for (const auto& records : {passed_records(), mixed_records(), hostile_records(), {}}) {
    const std::string svg = svg_from_dot(pipeline_dot(records));
    if (svg.empty()) GTEST_SKIP() << "Graphviz is not installed";
    EXPECT_TRUE(contains(svg, "<svg"));
    EXPECT_TRUE(contains(svg, "</svg>"));
    EXPECT_FALSE(contains(svg, "<script"));
  }
}

TEST(Pipeline, BadGraphGivesNoPicture) { EXPECT_EQ(svg_from_dot("digraph {"), ""); }

}  // namespace
}  // namespace indexpool::reports
