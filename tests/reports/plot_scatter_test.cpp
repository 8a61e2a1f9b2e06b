#include "indexpool/reports/plot_scatter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reports/score_page.hpp"

#include "markup.hpp"

namespace indexpool::reports {
namespace {

struct Mark {
  std::string kind;
  double x, y, measured, predicted;
};

std::vector<Mark> marks_of(const std::string& svg) {
  static const std::regex mark(
      R"re(<circle class="(dot|ring) s[1-6]" cx="([0-9.-]+)" cy="([0-9.-]+)" r="[0-9.]+" )re"
      R"re(data-measured="([^"]+)" data-predicted="([^"]+)">)re");
  std::vector<Mark> marks;
  for (std::sregex_iterator at(svg.begin(), svg.end(), mark), end; at != end; ++at) {
    marks.push_back({(*at)[1], std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4]),
                     std::stod((*at)[5])});
  }
  return marks;
}

// A decade apart on both axes; the held-out one is 20 % too high.
std::vector<ScatterPoint> three() {
  return {{1e-5, 1.2e-5, "HBM", true, "held out & <odd>"},
          {1e-4, 1e-4, "HBM", false, "fitted"},
          {1e-3, 1e-3, "launch", false, "fitted too"}};
}

TEST(ScatterPlot, MarksCarryTheNumbersOfTheRows) {
  const std::string svg = scatter_plot(three());
  EXPECT_EQ(markup_problem(svg), "");
  const std::vector<Mark> marks = marks_of(svg);
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_EQ(marks[2].kind, "dot");  // what is held out is drawn last
  EXPECT_DOUBLE_EQ(marks[2].measured, 1e-5);
  EXPECT_DOUBLE_EQ(marks[2].predicted, 1.2e-5);
  EXPECT_EQ(marks[0].kind, "ring");
  EXPECT_DOUBLE_EQ(marks[0].measured, 1e-4);
  EXPECT_NE(svg.find("<title>held out &amp; &lt;odd&gt;</title>"), std::string::npos);
}

// 1e-5 to 1e-3 are two decades on either axis: 402 pixels to the right and 410 upwards.
TEST(ScatterPlot, ADecadeIsAsLongAsADecade) {
  const std::vector<Mark> marks = marks_of(scatter_plot(three()));
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_NEAR(marks[1].x - marks[0].x, 201, 0.2);
  EXPECT_NEAR(marks[0].y - marks[1].y, 205, 0.2);
  EXPECT_NEAR((424 - marks[2].y) / 205, std::log10(1.2), 0.002);
}

TEST(RatioPlot, PutsAnErrorAboveOrBelowTheLineOfNone) {
  const std::string svg = ratio_plot(three());
  EXPECT_EQ(markup_problem(svg), "");
  const std::vector<Mark> marks = marks_of(svg);
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_DOUBLE_EQ(marks[0].y, marks[1].y);
  EXPECT_LT(marks[2].y, marks[0].y);
  // The axis reaches 1.3 x 1.05 on both sides of its middle.
  EXPECT_NEAR((marks[0].y - marks[2].y) / 205, std::log(1.2) / std::log(1.365), 0.002);
}

TEST(ScatterPlot, LeavesOutWhatNoLogarithmHasAndIsEmptyWithoutRows) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(scatter_plot({}), "");
  EXPECT_EQ(ratio_plot({{0, 1, "", true, ""}, {1, infinite, "", true, ""}}), "");
  EXPECT_EQ(marks_of(scatter_plot({{1, 1, "", true, ""}, {1, std::nan(""), "", true, ""}})).size(),
            1u);
}

TEST(ScatterPlot, DrawsMarksOnOnePixelOnce) {
  const std::vector<ScatterPoint> many(1000, three().front());
  EXPECT_EQ(marks_of(scatter_plot(many)).size(), 1u);
}

std::vector<ScatterPoint> any_points() {
  std::vector<ScatterPoint> points;
  const auto count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    const auto time = [] { return std::pow(10.0, *rc::gen::inRange(-9000, 3000) / 1000.0); };
    points.push_back({time(), time(), fmt::format("s{}", *rc::gen::inRange(0, 9)),
                      *rc::gen::arbitrary<bool>(), "row"});
  }
  return points;
}

RC_GTEST_PROP(ScatterPlot, NoMarkLeavesThePicture, ()) {
  const std::vector<ScatterPoint> points = any_points();
  for (const std::string& svg : {scatter_plot(points), ratio_plot(points)}) {
    RC_ASSERT(markup_problem(svg).empty());
    const std::vector<Mark> marks = marks_of(svg);
    RC_ASSERT(!marks.empty() && marks.size() <= points.size());
    for (const Mark& mark : marks) {
      RC_ASSERT(mark.x >= 68 && mark.x <= 470);
      RC_ASSERT(mark.y >= 14 && mark.y <= 424);
    }
  }
}

RC_GTEST_PROP(ScatterPlot, ColoursDependOnNamesAndNotOnTheOrderOfRows, ()) {
  std::vector<ScatterPoint> points = any_points();
  for (ScatterPoint& point : points) point.held_out = true;
  const auto colours = [](const std::string& svg) {
    std::multiset<std::string> out;
    static const std::regex mark(R"re(<circle class="dot (s[1-6])" cx="[^"]+" cy="[^"]+")re");
    for (std::sregex_iterator at(svg.begin(), svg.end(), mark), end; at != end; ++at) {
      out.insert((*at)[0]);
    }
    return out;
  };
  const auto before = colours(scatter_plot(points));
  std::reverse(points.begin(), points.end());
  RC_ASSERT(colours(scatter_plot(points)) == before);
}

TEST(ScorePage, StandsAloneAndSaysWhatWasFitted) {
  ScorePage page;
  page.title = "<mine> on h200";
  page.command = "indexpool score 'a & b.csv'";
  page.facts = {{"7.9 %", "mean error"}};
  page.provenance = {"fitted on 70 of 100 rows"};
  page.points = three();
  page.errors = {{{"kernel", "kernel"}}, {{Cell("gemm")}}};
  const std::string html = score_html(page);
  EXPECT_EQ(markup_problem(html), "");
  EXPECT_TRUE(external_references(html).empty());
  for (const char* part : {"&lt;mine&gt;", "a &amp; b.csv", "7.9 %", "fitted on 70", "gemm"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(html.find("What was fitted"), std::string::npos);  // there are no constants
  EXPECT_EQ(score_html(page), html);
  page.points.clear();
  EXPECT_EQ(markup_problem(score_html(page)), "");
}

}  // namespace
}  // namespace indexpool::reports
