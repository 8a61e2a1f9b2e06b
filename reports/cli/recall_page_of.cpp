#include "indexpool/reports/cli/recall_page_of.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace indexpool::cli {
namespace {

using reference::training::Interval;
using verify::recall::Form;
using verify::recall::Row;

constexpr std::size_t most_lines = 6;  // colours of the plots

// Of one policy in one form, over the ratios.
struct Curve {
  std::string name;
  std::vector<const Row*> rows;
};

// A gate that starts as a mean is drawn by mean pooling's line.
bool drawn_by_mean(const Curve& curve) {
  return curve.name != "mean" && std::ranges::all_of(curve.rows, [](const Row* row) {
           return row->over_mean.low == 0 && row->over_mean.high == 0;
         });
}

// In the order of the mean over ratios of `value`, best first; each policy once, in its better
// form, and mean pooling always among the first.
std::vector<Curve> best_curves(const std::vector<Row>& rows, Interval Row::*value) {
  std::map<std::pair<std::string, Form>, Curve> all;
  for (const Row& row : rows) {
    if (row.policy == "oracle" || row.policy == "best_pools") continue;
    Curve& curve = all[{row.policy, row.form}];
    const bool learnt = row.form == Form::trained || row.form == Form::untrained;
    curve.name = learnt ? fmt::format("{}, {}", row.policy, to_string(row.form)) : row.policy;
    curve.rows.push_back(&row);
  }
  const auto total = [&](const Curve& curve) {
    double sum = 0;
    for (const Row* row : curve.rows) sum += (row->*value).value;
    return sum;
  };
  std::map<std::string, const Curve*> chosen;
  for (const auto& [key, curve] : all) {
    if (drawn_by_mean(curve)) continue;
    const Curve*& best = chosen[key.first];
    if (best == nullptr || total(curve) > total(*best)) best = &curve;
  }
  std::vector<Curve> curves;
  curves.reserve(chosen.size());
  for (const auto& [name, curve] : chosen) curves.push_back(*curve);
  std::ranges::stable_sort(curves,
                           [&](const Curve& a, const Curve& b) { return total(a) > total(b); });
  const auto mean = std::ranges::find(curves, "mean", &Curve::name);
  if (mean - curves.begin() >= static_cast<std::ptrdiff_t>(most_lines))
    std::rotate(curves.begin() + most_lines - 1, mean, mean + 1);
  curves.resize(std::min(curves.size(), most_lines));
  return curves;
}

reports::LinePlot plot_of(const std::vector<Row>& rows, Interval Row::*value,
                          const std::string& heading, const std::string& label) {
  reports::LinePlot plot{heading, "tokens pooled into one", label, {}, 0.0};
  for (const Curve& curve : best_curves(rows, value)) {
    reports::LineSeries& series = plot.series.emplace_back();
    series.name = curve.name;
    for (const Row* row : curve.rows) {
      series.x.push_back(static_cast<double>(row->ratio));
      series.y.push_back((row->*value).value);
      series.low.push_back((row->*value).low);
      series.high.push_back((row->*value).high);
    }
  }
  return plot;
}

reports::RecallPage::Part part_of(const RecallResult& result) {
  reports::RecallPage::Part part;
  part.name = result.data;
  const Row& first = result.rows.front();
  part.notes = {result.about + ".",
                fmt::format("{} held-out queries, {} tokens asked for by each. Intervals: 95 % "
                            "bootstrap over {}.",
                            first.queries, first.k, result.unit)};
  std::istringstream leaders(leaders_text({result}));
  for (std::string line; std::getline(leaders, line);) part.notes.push_back(line);
  part.plots = {plot_of(result.rows, &Row::recall, "Recall, the best six with 95 % intervals",
                        fmt::format("recall@{}", first.k)),
                plot_of(result.rows, &Row::mass, "Attention kept, the best six", "attention")};
  std::map<std::int64_t, std::vector<Row>> by_ratio;
  for (const Row& row : result.rows) by_ratio[row.ratio].push_back(row);
  for (const auto& [ratio, rows] : by_ratio) {
    RecallResult one = result;
    one.rows = rows;
    part.rankings.push_back(
        {fmt::format("{}:1, {} tokens selected for {}", ratio, rows.back().selected, first.k),
         ranking_table({one})});
  }
  return part;
}

reports::Table policy_table() {
  reports::Table table;
  table.columns = {{"policy", "policy"}, {"note", "what it is here"}};
  for (const verify::recall::Policy& policy : verify::recall::compared_policies())
    table.rows.push_back({policy.name, policy.note});
  return table;
}

}  // namespace

reports::RecallPage recall_page_of(const std::vector<RecallResult>& results,
                                   const std::string& command) {
  reports::RecallPage page;
  page.title = "Recall of pooled indexers";
  page.command = command;
  page.notes = {
      "Asked for: the tokens that score highest one by one. Selected: the tokens of the pools that "
      "score highest, as many as were asked for, rounded up to whole pools (or as --pools says).",
      "Recall: the share of those asked for that was selected. Over mean: less the recall of mean "
      "pooling, query by query. F1: harmonic mean of recall and precision.",
      "Attention kept: softmax(q k / sqrt(D)) on the selected tokens, mean over heads; beside it, "
      "that of the tokens asked for. The two rankings differ where a few tokens hold most "
      "attention.",
      "Trained policies learnt on other queries (of real activations: over the same keys) to match "
      "the distribution of attention over pools, which is mass, not recall."};
  for (const RecallResult& result : results) page.parts.push_back(part_of(result));
  page.policies = policy_table();
  return page;
}

}  // namespace indexpool::cli
