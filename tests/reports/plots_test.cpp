#include "indexpool/reports/plots.hpp"

#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "markup.hpp"
#include "sample.hpp"

namespace indexpool::reports {
namespace {

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The points of the first <polyline>.
std::vector<std::pair<double, double>> first_line(const std::string& svg) {
  const std::size_t start = svg.find("points=\"", svg.find("<polyline")) + 8;
  std::istringstream text(svg.substr(start, svg.find('"', start) - start));
  std::vector<std::pair<double, double>> points;
  double x = 0, y = 0;
  for (char comma = 0; text >> x >> comma >> y;) points.emplace_back(x, y);
  return points;
}

std::vector<Curve> memory_curves() {
  std::vector<Curve> curves = sample_curves();
  std::erase_if(curves, [](const Curve& curve) { return curve.plot != "memory"; });
  return curves;
}

TEST(CurvePlot, IsWellFormedWithAMarkPerPoint) {
  const std::string svg = curve_plot(memory_curves());
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count_of(svg, "<polyline"), 3u);
  EXPECT_EQ(count_of(svg, "<title>"), 3 * memory_curves().front().tokens.size());
}

TEST(CurvePlot, MoreTokensLieToTheRightAndMoreBytesHigher) {
  const auto points = first_line(curve_plot(memory_curves()));
  ASSERT_EQ(points.size(), memory_curves().front().tokens.size());
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_GT(points[i].first, points[i - 1].first);
    EXPECT_LT(points[i].second, points[i - 1].second);  // SVG's y grows downwards
  }
}

TEST(CurvePlot, IgnoresPointsThatNoLogarithmHas) {
  Curve curve{"odd", "time", "seconds", {0, 4096, 8192, 16384, 32768}, {1, 0, 2, -1, 3}, {}, {}};
  const auto points = first_line(curve_plot({curve}));
  EXPECT_EQ(points.size(), 2u);  // 8192 and 32768
  curve.value[4] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(curve_plot({curve}), "");
  EXPECT_EQ(curve_plot({}), "");
}

TEST(UtilisationPlot, MarksEveryInexactCheckAndOneLineOfExactOnesPerOperation) {
  const std::string svg = utilisation_plot(passed_records());
  EXPECT_EQ(markup_problem(svg), "");
  // pool: bound, weight_sum, checksum and its exact ones; logits: bound, golden; three exact lines.
  EXPECT_EQ(count_of(svg, "<circle"), 4u + 2u + 3u);
  EXPECT_NE(svg.find(">golden, guards, lane_order, quantiser, rerun, scale, traffic<"),
            std::string::npos)
      << svg;
}

TEST(UtilisationPlot, KeepsAFailedExactCheckOnALineOfItsOwn) {
  std::vector<Record> records = passed_records();
  records[4].verdict.checks[0].status = Status::failed;
  const std::string svg = utilisation_plot(records);
  EXPECT_NE(svg.find("<circle class=\"mark failed\""), std::string::npos) << svg;
  EXPECT_NE(svg.find(">selection<"), std::string::npos) << svg;
}

TEST(UtilisationPlot, DrawsEqualMarksOnce) {
  std::vector<Record> records;
  for (int i = 0; i < 1000; ++i) records.push_back(passed_records().front());
  EXPECT_EQ(count_of(utilisation_plot(records), "<circle"),
            count_of(utilisation_plot({records.front()}), "<circle"));
}

TEST(UtilisationPlot, ShowsInfiniteAndUndefinedErrorsBeyondTheBound) {
  std::vector<Record> records = {passed_records().front()};
  records[0].verdict.checks.resize(2);
  records[0].verdict.checks[0].utilisation = std::numeric_limits<double>::infinity();
  records[0].verdict.checks[1].utilisation = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = utilisation_plot(records);
  EXPECT_EQ(count_of(svg, "cx=\"1016.0\""), 2u) << svg;  // the right end
}

TEST(UtilisationPlot, IsEmptyWithoutChecks) { EXPECT_EQ(utilisation_plot({}), ""); }

}  // namespace
}  // namespace indexpool::reports
