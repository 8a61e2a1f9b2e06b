// Lines over linear axes: every point where it belongs, every mark with its number.
#include "indexpool/reports/plot_lines.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::reports {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(LinearTicks, AreRoundAndInside) {
  EXPECT_EQ(linear_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(linear_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
}

RC_GTEST_PROP(LinearTickLaws, FewEvenlySpacedAndInside, ()) {
  const double low = *rc::gen::inRange(-1000, 1000) / 7.0;
  const double high = low + *rc::gen::inRange(1, 100000) / 13.0;
  const auto ticks = linear_ticks(low, high, 6);
  RC_ASSERT(ticks.size() >= 2u && ticks.size() <= 7u);
  const double step = ticks[1] - ticks[0];
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    RC_ASSERT(ticks[i] >= low - 1e-6 * step && ticks[i] <= high + 1e-6 * step);
    RC_ASSERT(std::abs(ticks[i] - ticks[0] - static_cast<double>(i) * step) < 1e-6 * step);
  }
}

TEST(LinePlot, ShowsEachPointWithItsNumberAndInterval) {
  LinePlot plot{"Loss", "epoch", "loss", {{"learnt <from>", {0, 1, 2}, {3, 2, 1}, {}, {}}}};
  plot.series.push_back({"held out", {0, 1}, {2.5, 1.5}, {2, 1}, {3, 2}});
  const std::string svg = line_plot(plot);
  EXPECT_EQ(count_of(svg, "<circle"), 5u);
  EXPECT_EQ(count_of(svg, "<polygon"), 1u);  // the one with an interval
  EXPECT_NE(svg.find("learnt &lt;from&gt;, epoch 1: 2</title>"), std::string::npos);
  EXPECT_NE(svg.find("held out, epoch 0: 2.5 (2 to 3)"), std::string::npos);
  // The largest value at the top of the frame, the smallest at its foot.
  EXPECT_NE(svg.find("cx=\"58.0\" cy=\"14.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("cx=\"490.0\" cy=\"298.0\""), std::string::npos) << svg;
}

TEST(LinePlot, LeavesOutWhatIsNotFiniteAndIsEmptyWithoutTwoPoints) {
  LinePlot plot{"Loss", "epoch", "loss", {{"a", {0, 1, 2}, {1, NAN, 3}, {}, {}}}};
  EXPECT_EQ(count_of(line_plot(plot), "<circle"), 2u);
  plot.series[0].y[2] = HUGE_VAL;
  EXPECT_EQ(line_plot(plot), "");
  EXPECT_EQ(line_plot({}), "");
}

TEST(LinePlot, EqualValuesStillHaveAnAxis) {
  const LinePlot plot{"Flat", "epoch", "y", {{"a", {0, 1}, {0, 0}, {}, {}}}};
  const std::string svg = line_plot(plot);
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::reports
