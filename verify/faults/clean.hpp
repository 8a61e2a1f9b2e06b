// Runs without a fault: a false alarm is one of these.
#pragma once

#include "indexpool/verify/faults/faults.hpp"
#include "indexpool/verify/faults/page.hpp"

namespace indexpool::verify::faults {

// One run: a pool is closed by the real kernels (prefill, and decode with drafts), the checksum of
// its source rows is taken and checked, the pool is folded into its page's seal, and the page as it
// then is (1 to 64 states) is read by a consumer: every layer once. Inputs of every fill in turn.
CleanRuns run_clean(const CampaignOptions& options, const PageShape& shape);

}  // namespace indexpool::verify::faults
