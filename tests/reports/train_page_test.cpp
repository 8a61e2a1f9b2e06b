// The page about a training run: whole, self-contained, and honest about a run without curves.
#include "indexpool/reports/train_page.hpp"

#include <gtest/gtest.h>

#include "markup.hpp"

namespace indexpool::reports {
namespace {

TrainPage sample_page() {
  TrainPage page;
  page.title = "Training <kpool> & co";
  page.command = "indexpool train --out 'a b'";
  page.facts = {{"0.68 (0.65 to 0.71)", "recall@8"}};
  page.notes = {"Better, a < b."};
  page.plots = {{"Loss", "epoch", "loss", {{"learnt from", {0, 1}, {2, 1}, {}, {}}}}};
  page.epochs.columns = {{"epoch", "epoch", true}};
  page.epochs.rows = {{Cell("0", std::int64_t{0})}, {Cell("1", std::int64_t{1})}};
  page.parameters.columns = {{"parameter", "parameter"}};
  page.parameters.rows = {{Cell("gate_projection")}};
  return page;
}

TEST(TrainPage, IsWellFormedAndFetchesNothing) {
  const std::string html = train_html(sample_page());
  EXPECT_EQ(markup_problem(html), "");
  EXPECT_TRUE(external_references(html).empty());
  for (const char* part : {"Training &lt;kpool&gt; &amp; co", "recall@8", "a &lt; b", "<polyline",
                           "gate_projection", "indexpool train --out"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_EQ(train_html(sample_page()), html);
}

TEST(TrainPage, SaysSoWhenThereIsNoCurve) {
  TrainPage page = sample_page();
  page.plots[0].series[0].x = {0};
  const std::string html = train_html(page);
  EXPECT_EQ(markup_problem(html), "");
  EXPECT_EQ(html.find("<polyline"), std::string::npos);
  EXPECT_NE(html.find("no curve"), std::string::npos);
}

}  // namespace
}  // namespace indexpool::reports
