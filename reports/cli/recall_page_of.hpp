// Recall as a page.
#pragma once

#include "indexpool/reports/cli/recall_tables.hpp"

namespace indexpool::cli {

reports::RecallPage recall_page_of(const std::vector<RecallResult>& results,
                                   const std::string& command);

}  // namespace indexpool::cli
