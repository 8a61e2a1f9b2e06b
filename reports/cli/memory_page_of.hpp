// From a model and how it is served to the page about its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/reports/memory_page.hpp"

namespace indexpool::cli {

// Waterfalls at `tokens`; curves by kind from 4K to 10M tokens, and of the indexer with a key for
// each token.
reports::MemoryPage memory_page_of(const Architecture& model, MemoryRequest request,
                                   const std::vector<std::int64_t>& tokens, Bytes usable);

}  // namespace indexpool::cli
