#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/head_weights.hpp"
#include "indexpool/verify/faults/wilson.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

CampaignOptions small(const char* mode = "vllm_fp8") {
  CampaignOptions options;
  options.mode = mode;
  options.trials = 120;
  options.clean_runs = 0;
  options.seed = 11;
  return options;
}

std::int64_t by_layer(const Outcomes& outcomes, unsigned bit) {
  for (int layer = 0; layer < layer_count; ++layer) {
    if (layers()[layer].bit == bit) return outcomes.detected_by[layer];
  }
  return -1;
}
std::int64_t by_layer(const Outcomes& outcomes, std::string_view name) {
  for (int layer = 0; layer < layer_count; ++layer) {
    if (layers()[layer].name == name) return outcomes.detected_by[layer];
  }
  return -1;
}

const Campaign& whole_campaign() {
  static const Campaign campaign = run_campaign(small());
  return campaign;
}

Outcomes of_site(const Campaign& campaign, std::string_view site) {
  Outcomes all;
  for (const Cell& cell : campaign.cells) {
    if (cell.site->name == site) all += cell.outcomes;
  }
  return all;
}

Outcomes run_site(const char* site, const char* mode = "vllm_fp8") {
  CampaignOptions options = small(mode);
  options.sites = {site};
  return of_site(run_campaign(options), site);
}

TEST(Campaign, EverySiteAndModelIsTriedAndCountsAddUp) {
  const Campaign& campaign = whole_campaign();
  EXPECT_EQ(campaign.cells.size(), site_names().size() * model_names().size());
  for (const Cell& cell : campaign.cells) {
    const Outcomes& o = cell.outcomes;
    const std::string name = std::string(cell.site->name) + ", " + cell.model;
    EXPECT_EQ(o.trials, 120) << name;
    EXPECT_LE(o.visible, o.trials) << name;
    EXPECT_LE(o.detected, o.visible) << name;
    EXPECT_LE(o.needless, o.trials - o.visible) << name;
    for (int layer = 0; layer < layer_count; ++layer) {
      EXPECT_LE(o.detected_by[layer], o.detected) << name;
      if ((cell.site->layers & layers()[layer].bit) == 0) {
        EXPECT_EQ(by_layer(o, layers()[layer].bit), 0) << name << ": a layer that does not run";
      }
    }
  }
}

TEST(Campaign, WhereAnExactChecksumIsOlderNoVisibleFaultIsSilent) {
  for (const NumericMode& each : numeric_modes()) {
    const std::string& mode = each.name;
    CampaignOptions options = small(mode.c_str());
    for (const std::string& site : site_names()) {
      if (find_site(site).protection == Protection::full) options.sites.push_back(site);
    }
    std::int64_t visible = 0;
    for (const Cell& cell : run_campaign(options).cells) {
      visible += cell.outcomes.visible;
      EXPECT_EQ(cell.outcomes.silent(), 0) << mode << ", " << cell.site->name << ", " << cell.model;
    }
    EXPECT_GT(visible, each.quantised() ? 3000 : 2500) << mode;
  }
}

TEST(Campaign, FaultsBeforeAnyChecksumAreNotClaimedToBeSeen) {
  const Outcomes outcomes = run_site("unsealed_inputs");
  EXPECT_GT(outcomes.visible, 500);
  EXPECT_EQ(by_layer(outcomes, "source"), 0);
  EXPECT_EQ(by_layer(outcomes, "pair"), 0);
  EXPECT_EQ(by_layer(outcomes, "crc"), 0);
  EXPECT_LT(outcomes.detected, outcomes.visible / 5);  // NaN alone gives them away
}

TEST(Campaign, FaultsBeforeTheFoldAreInTheCrcAndNotInThePair) {
  for (const NumericMode& each : numeric_modes()) {
    const char* mode = each.name.c_str();
    for (const char* site : {"fresh_codes", "fresh_scales"}) {
      if (!each.quantised() && std::string_view(site) == "fresh_scales") continue;
      const Outcomes outcomes = run_site(site, mode);
      EXPECT_GT(outcomes.visible, 500) << mode << ", " << site;
      EXPECT_EQ(by_layer(outcomes, "crc"), 0) << mode << ", " << site;
      EXPECT_EQ(by_layer(outcomes, "pair"), outcomes.visible) << mode << ", " << site;
    }
  }
}

// Were the scale not in the kernel's sums: a scale by amax may be any number, so that its form and
// the f32 pair's bound let many changes of it through.
TEST(Campaign, ScalesByAmaxNeedThePairBeforeTheFold) {
  for (const char* mode : {"sglang_fp8", "int8"}) {
    CampaignOptions options = small(mode);
    options.sites = {"fresh_scales"};
    const Campaign campaign = run_campaign(options);
    const Outcomes outcomes = of_site(campaign, "fresh_scales");
    for (const char* layer : {"form", "linear"}) {
      EXPECT_LT(by_layer(outcomes, layer), outcomes.visible * 4 / 5) << mode << ", " << layer;
    }
  }
}

TEST(Campaign, FaultsInChecksumsLeaveThePayloadAlone) {
  for (const char* site : {"checksums", "fresh_sums"}) {
    const Outcomes outcomes = run_site(site);
    EXPECT_EQ(outcomes.visible, 0) << site;
    EXPECT_GT(outcomes.needless, 0) << site;
  }
}

TEST(Campaign, PaddingAndUnusedStatesAreMaskedWithoutAnAlarm) {
  const Outcomes outcomes = run_site("pages");
  EXPECT_LT(outcomes.visible, outcomes.trials);
  EXPECT_EQ(outcomes.needless, 0);
}

TEST(Campaign, IsTheSameOnAnyNumberOfThreadsAndForAnyChoiceOfCells) {
  CampaignOptions options = small();
  options.trials = 700;
  options.sites = {"codes", "fresh_scales"};
  options.threads = 1;
  const Campaign one = run_campaign(options);
  options.threads = 7;
  options.sites = {"fresh_scales"};
  options.models = {"stripe"};
  const Campaign seven = run_campaign(options);
  ASSERT_EQ(seven.cells.size(), 1u);
  bool found = false;
  for (const Cell& cell : one.cells) {
    if (cell.site != seven.cells[0].site || cell.model != "stripe") continue;
    found = true;
    EXPECT_EQ(cell.outcomes, seven.cells[0].outcomes);
  }
  EXPECT_TRUE(found);
}

TEST(Campaign, AnotherSeedDrawsOtherFaults) {
  CampaignOptions options = small();
  options.sites = {"pages"};
  options.models = {"single"};
  options.trials = 2000;
  const Campaign first = run_campaign(options);
  options.seed = 12;
  EXPECT_NE(run_campaign(options).cells[0].outcomes, first.cells[0].outcomes);
}

TEST(Campaign, CleanRunsOfEveryFillRaiseNoAlarm) {
  CampaignOptions options = small();
  options.sites = {"codes"};
  options.models = {"single"};
  options.trials = 1;
  options.clean_runs = 3000;
  for (const char* mode : {"vllm_fp8", "sglang_fp8", "int8", "bf16"}) {
    options.mode = mode;
    const CleanRuns clean = run_campaign(options).clean;
    EXPECT_EQ(clean.runs, 3000) << mode;
    for (const std::int64_t alarms : clean.alarms) EXPECT_EQ(alarms, 0) << mode;
    EXPECT_GT(clean.linear_utilisation, 0.01) << mode;
  }
}

TEST(Campaign, UnquantisedCachesHaveNoScalesToStrike) {
  EXPECT_THROW(run_site("scales", "bf16"), ConfigError);
  const Outcomes codes = run_site("codes", "bf16");
  EXPECT_GT(codes.visible, 500);
  EXPECT_EQ(codes.silent(), 0);
  EXPECT_EQ(by_layer(codes, "pair"), codes.visible);
}

// Were the pair not taken where nothing is quantised: the f32 pair's bound and the form let changes
// of few digits through.
TEST(Campaign, ElementsNeedThePairBeforeTheFold) {
  for (const char* mode : {"bf16", "hf_f32"}) {
    const Outcomes outcomes = run_site("fresh_codes", mode);
    EXPECT_EQ(outcomes.silent(), 0) << mode;
    for (const char* layer : {"form", "linear"}) {
      EXPECT_LT(by_layer(outcomes, layer), outcomes.visible * 9 / 10) << mode << ", " << layer;
    }
  }
}

TEST(Campaign, RecordsSayWhatHeldAndWhatIsOutside) {
  std::map<std::string, Record> records;
  for (Record& record : records_of(whole_campaign())) records[record.case_name] = record;
  EXPECT_EQ(records.size(), site_names().size() + 1);  // and the cost; no clean runs
  Record& codes = records["faults: codes"];
  EXPECT_NE(codes.verdict.status, Status::failed) << codes.verdict.reason;
  EXPECT_EQ(codes.values["single_trials"], 120);
  EXPECT_EQ(codes.values["all_coverage_fraction"], 1);
  EXPECT_EQ(records["faults: unsealed_inputs"].verdict.status, Status::skipped);
  EXPECT_EQ(records["faults: checksums"].verdict.status, Status::skipped);
  Record& cost = records["faults: cost"];
  EXPECT_EQ(cost.verdict.status, Status::passed);
  EXPECT_EQ(cost.values["layered_stored_bytes_per_page"], 16);
}

// A campaign whose layers miss something must fail: silence is planted in its counts.
TEST(Campaign, SilentFaultsAndFalseAlarmsFailTheirRecords) {
  Campaign campaign = whole_campaign();
  for (Cell& cell : campaign.cells) {
    if (cell.site->name == "codes") cell.outcomes.detected -= 2;  // 10 of some 600
  }
  campaign.clean.runs = 1000;
  campaign.clean.alarms[1] = 1;
  std::map<std::string, Status> statuses;
  for (const Record& r : records_of(campaign)) statuses[r.case_name] = r.verdict.status;
  EXPECT_EQ(statuses["faults: codes"], Status::failed);
  EXPECT_EQ(statuses["faults: clean runs"], Status::failed);
  EXPECT_NE(statuses["faults: scales"], Status::failed);
}

TEST(Campaign, BadOptionsAreTheUsersMistake) {
  CampaignOptions options = small();
  options.trials = 0;
  EXPECT_THROW(run_campaign(options), ConfigError);
  options = small();
  options.sites = {"code"};
  EXPECT_THROW(run_campaign(options), ConfigError);
  options = small();
  options.models = {"triple"};
  EXPECT_THROW(run_campaign(options), ConfigError);
  options = small("fp9");
  EXPECT_THROW(run_campaign(options), ConfigError);
}

// The rows of logits that head weights are judged by are those of the real kernel.
TEST(HeadWeights, RowsAreThoseOfTheLogitsKernel) {
  const HeadWeightScene scene("vllm_fp8", 3);
  const auto target = kernels::make_simt_target();
  StageContext context{*target, make_lookup({}), false};
  const std::int64_t stride = logits_stride(scene.inputs, 3);
  const LogitsOutput found =
      run_logits(context, {scene.inputs, scene.cache.layout, scene.cache.output.cache,
                           scene.queries.codes, scene.queries.scales, stride});
  double largest = 0, worst = 0;
  for (const HeadWeightScene::Row& row : scene.rows) {
    const auto logits = HeadWeightScene::logits(row, scene.weights(row));
    ASSERT_FALSE(logits.empty());
    for (std::size_t p = 0; p < logits.size(); ++p) {
      const auto at = static_cast<std::size_t>(row.row * stride) + p;
      largest = std::max(largest, std::abs(static_cast<double>(found.logits[at])));
      worst = std::max(worst, std::abs(static_cast<double>(found.logits[at]) - logits[p]));
    }
  }
  EXPECT_GT(largest, 0);
  EXPECT_LT(worst, 1e-4 * largest);  // other orders of summation, tensor cores
}

}  // namespace
}  // namespace indexpool::verify::faults
