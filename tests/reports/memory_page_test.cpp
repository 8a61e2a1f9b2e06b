#include "indexpool/reports/memory_page.hpp"

#include <cmath>
#include <regex>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "markup.hpp"

namespace indexpool::reports {
namespace {

struct Bar {
  double x, width;
};

std::vector<Bar> bars_of(const std::string& svg) {
  static const std::regex bar(R"re(<rect [^>]* x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)")re");
  std::vector<Bar> bars;
  for (std::sregex_iterator at(svg.begin(), svg.end(), bar), end; at != end; ++at) {
    bars.push_back({std::stod((*at)[1]), std::stod((*at)[2])});
  }
  return bars;
}

TEST(WaterfallPlot, EachBarBeginsWhereTheOneAboveEnds) {
  const std::vector<WaterfallStep> steps = {
      {"parameters", "experts", 60e9}, {"cache", "latents", 30e9}, {"state", "tails", 10e9}};
  const std::string svg = waterfall_plot(steps, 200e9);
  EXPECT_EQ(markup_problem(svg), "");
  const std::vector<Bar> bars = bars_of(svg);
  ASSERT_EQ(bars.size(), 4u);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_NEAR(bars[i].x, bars[i - 1].x + bars[i - 1].width, 0.2);
  }
  EXPECT_NEAR(bars[0].width, 2 * bars[1].width, 0.3);
  EXPECT_NEAR(bars[3].width, bars[0].width + bars[1].width + bars[2].width, 0.3);
  EXPECT_NE(svg.find("usable 200 GB"), std::string::npos);
  EXPECT_EQ(waterfall_plot({}, 1), "");
}

RC_GTEST_PROP(WaterfallPlot, NoBarLeavesThePicture, ()) {
  std::vector<WaterfallStep> steps;
  const auto count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    steps.push_back({"kind" + std::to_string(i % 8), "<term> & " + std::to_string(i),
                     std::pow(10.0, *rc::gen::inRange(0, 14))});
  }
  const std::string svg = waterfall_plot(steps, std::pow(10.0, *rc::gen::inRange(0, 14)));
  RC_ASSERT(markup_problem(svg).empty());
  const std::vector<Bar> bars = bars_of(svg);
  RC_ASSERT(bars.size() == steps.size() + 1);
  for (const Bar& bar : bars) RC_ASSERT(bar.x >= 210 && bar.x + bar.width <= 720 - 90 + 1.1);
}

TEST(MemoryPage, StandsAloneAndSaysHowItWasMade) {
  MemoryPage page;
  page.title = "Memory of <mine>";
  page.command = "indexpool predict --model 'a & b'";
  page.waterfalls = {{"1M tokens: fits", {{"cache", "latents", 5e9}}, 1e10}};
  page.curves = {{"one GPU", "memory", "bytes", {4096, 8192}, {1, 2}, {1, 2}, {1, 2}}};
  page.terms = {{{"what", "what"}}, {{Cell("latents")}}};
  const std::string html = memory_html(page);
  EXPECT_EQ(markup_problem(html), "");
  EXPECT_TRUE(external_references(html).empty());
  for (const char* part : {"Memory of &lt;mine&gt;", "a &amp; b", "1M tokens: fits", "<polyline"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace indexpool::reports
