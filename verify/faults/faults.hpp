// A campaign of injected faults: which layer of protection sees which fault, how surely, at what
// price, and what no layer can see.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::verify::faults {

struct CampaignOptions {
  std::string mode = "vllm_fp8";
  std::vector<std::string> sites, models;  // empty: all
  std::int64_t trials = 2000;              // per site and model
  std::int64_t clean_runs = 200'000;       // one run: a pool closed and folded, its page read
  std::uint64_t seed = 1;
  int threads = 0;                                   // 0: one per core; changes no result
  std::string repeat;                                // command line that repeats it
  std::function<void(const std::string&)> progress;  // may be empty
};

// Layers in the order in which a fault meets them.
inline constexpr int layer_count = 5;
struct LayerInfo {
  unsigned bit;  // in Alarms
  std::string_view name, purpose;
};
const LayerInfo (&layers())[layer_count];

// Trials of one model at one site. Visible: a consumer would get other numbers (+0 and -0 are the
// same number). Detected: visible, and at least one layer raised an alarm.
struct Outcomes {
  std::int64_t trials = 0, visible = 0, detected = 0;
  std::int64_t needless = 0;                   // alarms though what a consumer gets is intact
  std::int64_t detected_by[layer_count] = {};  // of the visible ones, by layers()
  std::int64_t silent() const { return visible - detected; }
  void operator+=(const Outcomes& other);
  bool operator==(const Outcomes&) const = default;
};

// full: an exact checksum is older than the fault. none: every checksum is younger.
enum class Protection { full, none };
struct SiteInfo {
  std::string_view name, purpose;
  Protection protection;
  unsigned layers;  // Alarms bits of the layers that run after the fault
};
std::vector<std::string> site_names();
std::vector<std::string> model_names();
const SiteInfo& find_site(std::string_view name);  // ConfigError with near names

struct Cell {
  const SiteInfo* site = nullptr;
  std::string model;
  Outcomes outcomes;
};

// Clean runs: everything as above and no fault.
struct CleanRuns {
  std::int64_t runs = 0;
  std::int64_t alarms[layer_count] = {};  // false positives, by layers()
  double linear_utilisation = 0;          // the largest difference over its bound
};

// What a layer costs. Scratch is written by kernels and free again after the fold.
struct LayerCost {
  std::string_view name, where;
  double stored_bytes_per_page = 0, share_of_page = 0;
  double scratch_bytes_per_pool = 0;
  double written_bytes_per_pool = 0, read_bytes_per_pool = 0;  // when a pool is closed
  double read_bytes_per_step = 0;  // by a decode step over `tokens_of_cost` tokens, one layer
  double stored_bytes = 0;         // at that length, one layer of the model
};
inline constexpr std::int64_t tokens_of_cost = std::int64_t{1} << 20;

struct Campaign {
  CampaignOptions options;
  std::vector<Cell> cells;
  CleanRuns clean;
  std::vector<LayerCost> costs;
  std::int64_t page_bytes = 0;
  std::int64_t pools_of_cost = 0;  // of tokens_of_cost tokens
};

// Deterministic in (options, seed) whatever the number of threads. Throws ConfigError for an
// unknown name, fewer than 1 trial.
Campaign run_campaign(const CampaignOptions& options);

// What must hold: this share of visible faults detected where the protection is full, no false
// alarm, less than this share of a page.
inline constexpr double wanted_coverage = 0.999, allowed_share_of_page = 0.01;
// A record per site, one for the clean runs, one for the cost.
std::vector<Record> records_of(const Campaign& campaign);

}  // namespace indexpool::verify::faults
