// Where and when faults strike, and how a batch of trials is run there. A new site is a function
// and a row.
#pragma once

#include <cstdint>
#include <span>

#include "indexpool/verify/faults/fault_model.hpp"
#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/subject.hpp"

namespace indexpool::verify::faults {

// Made once for all cells of a campaign.
struct Bench {
  CampaignOptions options;
  PageShape shape;
  LinearLink link;
  std::vector<StoredPage> pages;

  explicit Bench(const CampaignOptions& campaign);
};

struct Batch {
  const Bench& bench;
  const FaultModel& model;
  Random random;  // of the cell
  std::int64_t trials = 0;
};

struct Site {
  SiteInfo info;
  Outcomes (*run)(const Batch& batch);
};
std::span<const Site> sites();

// Adds one trial: `visible` or not, the alarms that were raised.
void count(Outcomes& outcomes, bool visible, Alarms alarms);

// --- stored bytes, in plain C++ ---
Outcomes strike_codes(const Batch& batch);
Outcomes strike_scales(const Batch& batch);
Outcomes strike_pages(const Batch& batch);
Outcomes strike_seals(const Batch& batch);
Outcomes strike_fresh_codes(const Batch& batch);
Outcomes strike_fresh_scales(const Batch& batch);
Outcomes strike_fresh_sums(const Batch& batch);
// --- inputs, through the kernels ---
Outcomes strike_keys(const Batch& batch);
Outcomes strike_gates(const Batch& batch);
Outcomes strike_ape(const Batch& batch);
Outcomes strike_keys_unsealed(const Batch& batch);
Outcomes strike_head_weights(const Batch& batch);

}  // namespace indexpool::verify::faults
