#include "indexpool/reports/attachments.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "indexpool/model/strict_json.hpp"
#include "indexpool/reports/gate.hpp"
#include "indexpool/reports/quantity.hpp"

namespace indexpool::reports {
namespace {

Cell of_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return {};
  return {fmt::format("{} of {}", part, whole), part};
}

Cell share_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return {};
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return {format_percent(share), share};
}

struct Noticed {
  std::int64_t noticed = 0, applicable = 0;
  void take(const JsonValue& value) {
    const std::string word = value.text();
    if (word != "noticed" && word != "let through" && word != "-") {
      value.fail("expected \"noticed\", \"let through\" or \"-\"");
    }
    noticed += word == "noticed" ? 1 : 0;
    applicable += word == "-" ? 0 : 1;
  }
};

// What of a row is not a rule.
bool is_name(const std::string& key) { return key == "mutant" || key == "class" || key == "ours"; }

using ByRule = std::map<std::string, Noticed>;

std::vector<Cell> rule_row(const std::string& name, const ByRule& counts) {
  std::vector<Cell> row = {Cell(name),
                           of_text(counts.at("ours").noticed, counts.at("ours").applicable)};
  for (const auto& [rule, count] : counts) {
    if (!is_name(rule)) row.push_back(of_text(count.noticed, count.applicable));
  }
  return row;
}

// A fault at a site: what each layer of checksums saw of it.
struct Injected {
  std::string site, model;
  std::int64_t trials = 0, visible = 0;
  std::map<std::string, std::int64_t> detected;
};

struct Campaign {
  std::vector<Injected> faults;     // in the file's order, as are the layers
  std::vector<std::string> layers;  // all together ("layered") come last
};

void read_row(const JsonValue& value, Campaign& campaign) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const JsonObject row =
      value.object({"site", "model", "layer", "trials", "visible", "detected"},
                   {"coverage", "coverage_low", "coverage_high", "needless_alarms", "clean_runs",
                    "false_alarms", "false_alarm_bound", "stored_bytes_per_page", "share_of_page",
                    "written_bytes_per_pool", "read_bytes_per_pool", "written_bytes_per_token",
                    "read_bytes_per_token", "read_bytes_per_step_at_1M", "stored_bytes_at_1M"});
  const std::string site = row["site"].text(), model = row["model"].text(),
                    layer = row["layer"].text();
  auto& faults = campaign.faults;
  auto at = std::find_if(faults.begin(), faults.end(), [&](const Injected& fault) {
    return fault.site == site && fault.model == model;
  });
  if (at == faults.end()) at = faults.insert(at, {site, model, 0, 0, {}});
  at->trials = row["trials"].integer(0, most);
  at->visible = row["visible"].integer(0, at->trials);
  at->detected[layer] = row["detected"].integer(0, at->visible);
  auto& layers = campaign.layers;
  if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
}

Campaign read_campaign(std::string_view text, std::string_view where) {
  Campaign campaign;
  const JsonValue root = parse_json(text, where);
  for (const JsonValue& value : root.array()) read_row(value, campaign);
  if (campaign.faults.empty()) root.fail("no fault in it");
  std::stable_partition(campaign.layers.begin(), campaign.layers.end(),
                        [](const std::string& layer) { return layer != "layered"; });
  return campaign;
}

}  // namespace

Attachment mutants_attachment(std::string_view text, std::string_view where) {
  Attachment out{"mutants",
                 "Would it notice? Mutants killed",
                 "Kernels and plans with one fault each, by class of fault, killed by the check "
                 "that is named for them. Equivalent mutants are not counted.",
                 {}};
  out.table.columns = {{"class", "class"},
                       {"mutants", "mutants", true},
                       {"killed", "killed", true},
                       {"share", "share", true}};
  for (const KillScore& score : parse_kill_scores(text, where)) {
    out.table.rows.push_back({Cell(score.name),
                              {format_count(score.mutants), score.mutants},
                              {format_count(score.killed), score.killed},
                              share_text(score.killed, score.mutants)});
  }
  return out;
}

Attachment rules_attachment(std::string_view text, std::string_view where) {
  Attachment out{"rules",
                 "What rules of public projects notice of the same mutants",
                 "Mutants that each rule would have refused, of those whose operation it judges.",
                 {}};
  std::vector<std::string> classes;
  std::map<std::string, ByRule> counts;
  const JsonValue root = parse_json(text, where);
  for (const JsonValue& row : root.array()) {
    const auto members = row.members();
    std::map<std::string, JsonValue> named(members.begin(), members.end());
    for (const char* key : {"mutant", "class", "ours"}) {
      if (!named.contains(key)) row.fail(fmt::format("no \"{}\"", key));
    }
    const std::string of_class = named.at("class").text();
    if (!counts.contains(of_class)) classes.push_back(of_class);
    for (const auto& [key, value] : members) {
      if (key == "mutant" || key == "class") continue;
      counts[of_class][key].take(value);
      counts["all"][key].take(value);
    }
  }
  if (classes.empty()) root.fail("no mutant in it");
  out.table.columns = {{"class", "class"}, {"ours", "our checks", true}};
  for (const auto& [rule, count] : counts.at("all")) {
    if (!is_name(rule)) out.table.columns.push_back({rule, rule, true});
  }
  classes.emplace_back("all");
  for (const std::string& name : classes) {
    ByRule row = counts.at("all");  // a rule that no row of the class names has an empty cell
    for (auto& [rule, count] : row) count = counts.at(name)[rule];
    out.table.rows.push_back(rule_row(name, row));
  }
  return out;
}

Attachment faults_attachment(std::string_view text, std::string_view where) {
  Attachment out{"faults",
                 "Injected faults that checksums saw",
                 "Share of the visible faults that each layer detected, by where and when a fault "
                 "strikes. A dash: the layer does not look there.",
                 {}};
  const Campaign campaign = read_campaign(text, where);
  out.table.columns = {{"site", "site"},
                       {"model", "fault"},
                       {"trials", "trials", true},
                       {"visible", "visible", true}};
  for (const std::string& layer : campaign.layers) {
    out.table.columns.push_back({layer, layer == "layered" ? "any layer" : layer, true});
  }
  for (const Injected& fault : campaign.faults) {
    std::vector<Cell> row = {Cell(fault.site),
                             Cell(fault.model),
                             {format_count(fault.trials), fault.trials},
                             {format_count(fault.visible), fault.visible}};
    for (const std::string& layer : campaign.layers) {
      const auto seen = fault.detected.find(layer);
      row.push_back(seen == fault.detected.end() ? Cell()
                                                 : share_text(seen->second, fault.visible));
    }
    out.table.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace indexpool::reports
