#include "indexpool/reports/cli/fault_tables.hpp"

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"
#include "indexpool/verify/faults/wilson.hpp"

namespace indexpool::cli {
namespace {

using reports::Cell;
using reports::Table;
using verify::faults::Campaign;
using verify::faults::layer_count;
using verify::faults::LayerCost;
using verify::faults::layers;
using verify::faults::Outcomes;
using verify::faults::Protection;
using verify::faults::rate_bound;
using verify::faults::Share;
using verify::faults::wilson;

// Enough digits to tell 99.9 % from more; 0 and 100 only where they are exact.
std::string percent(double share) {
  if (share == 0 || share == 1) return fmt::format("{:.0f} %", 100 * share);
  return fmt::format("{:.3f} %", 100 * share);
}

Cell bytes_cell(double bytes) { return {bytes == 0 ? "0" : reports::format_bytes(bytes), bytes}; }
Cell count_cell(std::int64_t count) { return {reports::format_count(count), count}; }

// Rows of the cost table that are layers have their place in layers(); -1: a sum of several.
int place_of(std::string_view name) {
  for (int layer = 0; layer < layer_count; ++layer) {
    if (layers()[layer].name == name) return layer;
  }
  return -1;
}

struct Alarms {
  std::int64_t runs = 0, alarms = 0;
  double bound = 1;
};
Alarms clean_alarms(const Campaign& campaign, std::string_view name) {
  Alarms found{campaign.clean.runs, 0, 1};
  const int layer = place_of(name);
  if (layer >= 0) found.alarms = campaign.clean.alarms[layer];
  if (layer < 0) {
    for (const std::int64_t alarms : campaign.clean.alarms) found.alarms += alarms;
  }
  found.bound = rate_bound(found.alarms, found.runs);
  return found;
}

const LayerCost& cost_of(const Campaign& campaign, std::string_view name) {
  for (const LayerCost& cost : campaign.costs) {
    if (cost.name == name) return cost;
  }
  return campaign.costs.front();
}

Cell share_cell(std::int64_t detected, const Outcomes& outcomes) {
  if (outcomes.visible == 0) return {};
  const double value = wilson(detected, outcomes.visible).value;
  return {percent(value), value};
}

Cell interval_cell(const Outcomes& outcomes) {
  if (outcomes.visible == 0) return {};
  const Share share = wilson(outcomes.detected, outcomes.visible);
  return {fmt::format("{} to {}", percent(share.low), percent(share.high)), share.low};
}

struct Group {
  Protection protection;
  const char* what;
};
constexpr Group groups[] = {
    {Protection::full, "An exact checksum is older than the fault"},
    {Protection::none, "Every checksum is younger, nothing here can tell but by NaN"}};

std::vector<Cell> machine_row(const Campaign& campaign, const verify::faults::Cell& cell,
                              std::string_view layer, std::int64_t detected) {
  const Outcomes& o = cell.outcomes;
  const Share share = wilson(detected, o.visible);
  const LayerCost& cost = cost_of(campaign, layer);
  const Alarms clean = clean_alarms(campaign, layer);
  const auto number = [](double value) { return Cell{fmt::format("{}", value), value}; };
  const auto count = [](std::int64_t value) { return Cell{std::to_string(value), value}; };
  const auto of_visible = [&](double value) { return o.visible == 0 ? Cell() : number(value); };
  const auto kpool = static_cast<double>(verify::faults::tokens_of_cost) /
                     static_cast<double>(campaign.pools_of_cost);
  return {Cell(std::string(cell.site->name)),
          Cell(cell.model),
          Cell(std::string(layer)),
          count(o.trials),
          count(o.visible),
          count(detected),
          of_visible(share.value),
          of_visible(share.low),
          of_visible(share.high),
          count(o.needless),
          count(clean.runs),
          count(clean.alarms),
          number(clean.bound),
          number(cost.stored_bytes_per_page),
          number(cost.share_of_page),
          number(cost.written_bytes_per_pool),
          number(cost.read_bytes_per_pool),
          number(cost.written_bytes_per_pool / kpool),
          number(cost.read_bytes_per_pool / kpool),
          number(cost.read_bytes_per_step),
          number(cost.stored_bytes)};
}

}  // namespace

Table cost_table(const Campaign& campaign) {
  Table table{{{"layer", "layer"},
               {"checked", "checked"},
               {"stored_bytes_per_page", "stored/page", true},
               {"share_of_page", "of page", true},
               {"written_bytes_per_pool", "written/pool", true},
               {"read_bytes_per_pool", "read/pool", true},
               {"read_bytes_per_step_at_1M", "read/step, 1M", true},
               {"stored_bytes_at_1M", "stored, 1M", true},
               {"clean_runs", "clean runs", true},
               {"false_alarms", "false alarms", true},
               {"false_alarm_bound", "rate below", true}},
              {}};
  for (const LayerCost& cost : campaign.costs) {
    const Alarms clean = clean_alarms(campaign, cost.name);
    const bool ran = clean.runs > 0 && cost.where != "not chosen";
    table.rows.push_back({Cell(std::string(cost.name)),
                          Cell(std::string(cost.where)),
                          bytes_cell(cost.stored_bytes_per_page),
                          {percent(cost.share_of_page), cost.share_of_page},
                          bytes_cell(cost.written_bytes_per_pool),
                          bytes_cell(cost.read_bytes_per_pool),
                          bytes_cell(cost.read_bytes_per_step),
                          bytes_cell(cost.stored_bytes),
                          ran ? count_cell(clean.runs) : Cell(),
                          ran ? count_cell(clean.alarms) : Cell(),
                          ran ? Cell(fmt::format("{:.2g}", clean.bound), clean.bound) : Cell()});
  }
  return table;
}

Table coverage_table(const Campaign& campaign) {
  Table table{{{"site", "site"},
               {"model", "fault"},
               {"trials", "trials", true},
               {"visible", "visible", true}},
              {}};
  for (const auto& layer : layers()) {
    table.columns.push_back({std::string(layer.name), std::string(layer.name), true});
  }
  table.columns.push_back({"coverage", "any layer", true});
  table.columns.push_back({"coverage_low", "95 % interval", true});
  table.columns.push_back({"silent", "silent", true});
  table.columns.push_back({"needless", "needless", true});
  for (const auto& cell : campaign.cells) {
    const Outcomes& o = cell.outcomes;
    std::vector<Cell> row = {Cell(std::string(cell.site->name)), Cell(cell.model),
                             count_cell(o.trials), count_cell(o.visible)};
    for (int layer = 0; layer < layer_count; ++layer) {
      const bool runs = (cell.site->layers & layers()[layer].bit) != 0;
      row.push_back(runs ? share_cell(o.detected_by[layer], o) : Cell());
    }
    row.push_back(share_cell(o.detected, o));
    row.push_back(interval_cell(o));
    row.push_back(count_cell(o.silent()));
    row.push_back(count_cell(o.needless));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table coverage_by_layer(const Campaign& campaign) {
  Table table;
  for (const char* key : {"site",
                          "model",
                          "layer",
                          "trials",
                          "visible",
                          "detected",
                          "coverage",
                          "coverage_low",
                          "coverage_high",
                          "needless_alarms",
                          "clean_runs",
                          "false_alarms",
                          "false_alarm_bound",
                          "stored_bytes_per_page",
                          "share_of_page",
                          "written_bytes_per_pool",
                          "read_bytes_per_pool",
                          "written_bytes_per_token",
                          "read_bytes_per_token",
                          "read_bytes_per_step_at_1M",
                          "stored_bytes_at_1M"}) {
    table.columns.push_back({key, key});
  }
  for (const auto& cell : campaign.cells) {
    for (int layer = 0; layer < layer_count; ++layer) {
      if ((cell.site->layers & layers()[layer].bit) == 0) continue;
      table.rows.push_back(
          machine_row(campaign, cell, layers()[layer].name, cell.outcomes.detected_by[layer]));
    }
    table.rows.push_back(machine_row(campaign, cell, "layered", cell.outcomes.detected));
  }
  return table;
}

std::string fault_summary(const Campaign& campaign, const std::vector<Record>& records) {
  std::string text;
  for (const Group& group : groups) {
    Outcomes all;
    for (const auto& cell : campaign.cells) {
      if (cell.site->protection == group.protection) all += cell.outcomes;
    }
    if (all.visible == 0) continue;
    const Share share = wilson(all.detected, all.visible);
    text += fmt::format("{}: {} of {} visible faults detected, {} ({} to {}).\n", group.what,
                        reports::format_count(all.detected), reports::format_count(all.visible),
                        percent(share.value), percent(share.low), percent(share.high));
  }
  const Alarms clean = clean_alarms(campaign, "layered");
  if (clean.runs > 0) {
    text += fmt::format(
        "Clean runs (a pool closed, checked, folded, and its page read): {} of {} raised an alarm, "
        "so at most {:.2g} do at 95 %; the f32 pair reached {:.3f} of its bound.\n",
        reports::format_count(clean.alarms), reports::format_count(clean.runs), clean.bound,
        campaign.clean.linear_utilisation);
  }
  const LayerCost& all = cost_of(campaign, "layered");
  text += fmt::format("Stored: {:.0f} of {} bytes per page, {}.\n", all.stored_bytes_per_page,
                      reports::format_count(campaign.page_bytes), percent(all.share_of_page));
  for (const Record& record : records) {
    if (record.verdict.status == Status::passed) continue;
    text += fmt::format("{} {}: {}\n", to_string(record.verdict.status), record.case_name,
                        record.verdict.reason);
  }
  return text;
}

}  // namespace indexpool::cli
