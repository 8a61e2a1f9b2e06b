// Campaigns as records: a check per fault model, numbers with their units in the name.
#include <fmt/format.h>

#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/wilson.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify::faults {
namespace {

Record start(const Campaign& campaign, const std::string& what, const char* implementation) {
  Record record;
  record.case_name = "faults: " + what;
  record.op = "pipeline";
  record.implementation = implementation;
  record.reference = "the same bytes without a fault";
  record.environment.target = "simt";
  record.seed = campaign.options.seed;
  record.repeat = campaign.options.repeat;
  record.values["page_bytes"] = static_cast<double>(campaign.page_bytes);
  return record;
}

// A single model below the wanted share is worth a look; the site as a whole decides.
Check coverage_check(const Cell& cell) {
  const Outcomes& o = cell.outcomes;
  Check check;
  check.name = "coverage_" + cell.model;
  check.compared = o.visible;
  check.violations = o.silent();
  const Share share = wilson(o.detected, o.visible);
  if (o.visible > 0 && share.value < wanted_coverage) {
    check.status = Status::marginal;
    check.reason =
        fmt::format("{} of {} visible faults were silent: {:.3f} % detected, wanted {} %",
                    o.silent(), o.visible, 100 * share.value, 100 * wanted_coverage);
  }
  return check;
}

Check total_check(const Outcomes& all) {
  const Share share = wilson(all.detected, all.visible);
  Check total{"coverage", Status::passed, "", 0, all.visible, all.silent()};
  if (share.low >= wanted_coverage) return total;
  const bool failed = share.value < wanted_coverage;
  total.status = failed ? Status::failed : Status::marginal;
  total.reason = fmt::format("{:.3f} % of visible faults detected, the interval starts at {:.3f} %",
                             100 * share.value, 100 * share.low);
  return total;
}

void add_values(const std::string& prefix, const Outcomes& o, Record& record) {
  const auto set = [&](const std::string& name, double value) {
    record.values[prefix + '_' + name] = value;
  };
  const Share share = wilson(o.detected, o.visible);
  set("trials", static_cast<double>(o.trials));
  set("visible", static_cast<double>(o.visible));
  set("detected", static_cast<double>(o.detected));
  set("needless_alarms", static_cast<double>(o.needless));
  if (o.visible == 0) return;
  set("coverage_fraction", share.value);
  set("coverage_low_fraction", share.low);
  set("coverage_high_fraction", share.high);
  for (int layer = 0; layer < layer_count; ++layer) {
    set("detected_by_" + std::string(layers()[layer].name),
        static_cast<double>(o.detected_by[layer]));
  }
}

// All models of one site.
Record site_record(const Campaign& campaign, const SiteInfo& site) {
  Record record = start(campaign, std::string(site.name), "layered checksums");
  std::vector<Check> checks;
  Outcomes all;
  for (const Cell& cell : campaign.cells) {
    if (cell.site != &site) continue;
    checks.push_back(coverage_check(cell));
    add_values(cell.model, cell.outcomes, record);
    all += cell.outcomes;
  }
  add_values("all", all, record);
  if (site.protection == Protection::none) {
    record.verdict = refuse(Status::skipped,
                            "outside of what checksums can protect: " + std::string(site.purpose));
    return record;
  }
  if (all.visible == 0) {
    record.verdict = refuse(Status::skipped, "what a consumer gets never changed");
    return record;
  }
  checks.insert(checks.begin(), total_check(all));
  record.verdict = assemble(std::move(checks));
  return record;
}

Record clean_record(const Campaign& campaign) {
  Record record = start(campaign, "clean runs", "layered checksums");
  std::vector<Check> checks;
  for (int layer = 0; layer < layer_count; ++layer) {
    const std::string name(layers()[layer].name);
    const std::int64_t alarms = campaign.clean.alarms[layer];
    Check check{"false_alarms_" + name, Status::passed, "", 0, campaign.clean.runs, alarms};
    if (layers()[layer].name == "linear") check.utilisation = campaign.clean.linear_utilisation;
    if (alarms > 0) {
      check.status = Status::failed;
      check.reason =
          fmt::format("{} of {} runs without a fault raised an alarm", alarms, campaign.clean.runs);
    }
    record.values[name + "_false_alarm_bound_fraction"] = rate_bound(alarms, campaign.clean.runs);
    checks.push_back(std::move(check));
  }
  record.values["clean_runs"] = static_cast<double>(campaign.clean.runs);
  record.verdict = assemble(std::move(checks));
  return record;
}

Record cost_record(const Campaign& campaign) {
  Record record = start(campaign, "cost", "layered checksums");
  Check check{"share_of_page", Status::passed, "", 0, 1, 0};
  for (const LayerCost& cost : campaign.costs) {
    const std::string name(cost.name);
    record.values[name + "_stored_bytes_per_page"] = cost.stored_bytes_per_page;
    record.values[name + "_share_of_page_fraction"] = cost.share_of_page;
    record.values[name + "_written_bytes_per_pool"] = cost.written_bytes_per_pool;
    record.values[name + "_read_bytes_per_pool"] = cost.read_bytes_per_pool;
    record.values[name + "_read_bytes_per_step_at_1M"] = cost.read_bytes_per_step;
    record.values[name + "_stored_bytes_at_1M"] = cost.stored_bytes;
    if (name != "layered" || cost.share_of_page < allowed_share_of_page) continue;
    check.status = Status::failed;
    check.violations = 1;
    check.reason = fmt::format("{:.2f} % of a page, allowed less than {} %",
                               100 * cost.share_of_page, 100 * allowed_share_of_page);
  }
  record.verdict = assemble({check});
  return record;
}

}  // namespace

std::vector<Record> records_of(const Campaign& campaign) {
  std::vector<Record> records;
  const SiteInfo* last = nullptr;
  for (const Cell& cell : campaign.cells) {
    if (cell.site == last) continue;
    last = cell.site;
    records.push_back(site_record(campaign, *cell.site));
  }
  if (campaign.clean.runs > 0) records.push_back(clean_record(campaign));
  records.push_back(cost_record(campaign));
  return records;
}

}  // namespace indexpool::verify::faults
