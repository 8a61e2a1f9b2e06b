// What a published form promises beside what its formula gives, worked out in numbers: sections of
// the report of `indexpool run --policy P`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "indexpool/reports/report.hpp"

namespace indexpool::cli {

// composite: the cache that its attention needs, and why its published sketch gives no compression.
// additive, additive_raw: weights below zero. Nothing for the others.
std::vector<reports::Attachment> worked_pages(std::string_view policy, std::int64_t tokens);

}  // namespace indexpool::cli
