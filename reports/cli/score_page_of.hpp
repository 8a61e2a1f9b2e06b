// From a score to the page about it.
#pragma once

#include <string>

#include "indexpool/model/latency/score.hpp"
#include "indexpool/reports/score_page.hpp"

namespace indexpool::cli {

reports::ScorePage score_page_of(const Score& score, const std::string& command);

}  // namespace indexpool::cli
