#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/faults/clean.hpp"
#include "indexpool/verify/faults/cost.hpp"
#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/sites.hpp"

namespace indexpool::verify::faults {
namespace {

// Full pages, partly filled ones and one with a single state, by prefill and by decode with drafts.
std::vector<StoredPage> stored_pages(const CampaignOptions& options, const PageShape& shape) {
  std::vector<StoredPage> pages;
  constexpr std::int64_t page = states_per_page * index_kpool;  // tokens
  const std::vector<std::int64_t> lengths = {2 * page + 37 * index_kpool + 3, page + index_kpool,
                                             30};
  const Schedule schedule{2 * page, 150, 2};
  for (const char* fill : {"normal", "ar1", "outlier_channel", "log_uniform"}) {
    const IndexerInputs inputs = draw_inputs(options.mode, fill, lengths, options.seed);
    const CacheRun run = run_kernels(inputs, schedule, options.seed);
    for (StoredPage& each : pages_of(inputs, run, shape)) pages.push_back(std::move(each));
  }
  return pages;
}

void validate(const CampaignOptions& options) {
  numeric_mode(options.mode);
  for (const std::string& site : options.sites) find_site(site);
  for (const std::string& model : options.models) find_fault_model(model);
  if (options.trials < 1 || options.trials > 100'000'000) {
    throw ConfigError(fmt::format("trials: found {}, expected 1 to 100 000 000", options.trials));
  }
  if (options.clean_runs < 0 || options.clean_runs > 100'000'000) {
    throw ConfigError(
        fmt::format("clean runs: found {}, expected 0 to 100 000 000", options.clean_runs));
  }
  if (options.threads < 0) {
    throw ConfigError(fmt::format("threads: found {}, expected 0 or more", options.threads));
  }
}

bool chosen(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

}  // namespace

Bench::Bench(const CampaignOptions& campaign)
    : options(campaign),
      shape(page_shape(campaign.mode)),
      link(shape),
      pages(stored_pages(campaign, shape)) {}

void Outcomes::operator+=(const Outcomes& other) {
  trials += other.trials;
  visible += other.visible;
  detected += other.detected;
  needless += other.needless;
  for (int layer = 0; layer < layer_count; ++layer) detected_by[layer] += other.detected_by[layer];
}

Campaign run_campaign(const CampaignOptions& options) {
  validate(options);
  Campaign campaign;
  campaign.options = options;
  const Bench bench(options);
  campaign.page_bytes = bench.shape.bytes();
  campaign.costs = layer_costs(bench.shape, index_kpool);
  campaign.pools_of_cost = tokens_of_cost / index_kpool;
  for (std::size_t s = 0; s < sites().size(); ++s) {
    const Site& site = sites()[s];
    const bool nothing_there = site.info.name.ends_with("scales") && !bench.shape.quantised();
    if (!chosen(options.sites, site.info.name) || nothing_there) continue;
    for (std::size_t m = 0; m < fault_models().size(); ++m) {
      const FaultModel& model = fault_models()[m];
      if (!chosen(options.models, model.name)) continue;
      if (options.progress) options.progress(fmt::format("{}, {}", site.info.name, model.name));
      // By its place in the tables, so that a cell is the same whatever else runs.
      const std::uint64_t stream = 7000 + 100 * s + m;
      campaign.cells.push_back(
          {&site.info, std::string(model.name),
           site.run({bench, model, Random(options.seed, stream), options.trials})});
    }
  }
  if (campaign.cells.empty()) {
    throw ConfigError(fmt::format("mode {} stores no scales: there is nothing to strike at {}",
                                  options.mode, fmt::join(options.sites, ", ")));
  }
  campaign.clean = run_clean(options, bench.shape);
  return campaign;
}

}  // namespace indexpool::verify::faults
