// A campaign of injected faults as tables.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/table.hpp"
#include "indexpool/verify/faults/faults.hpp"

namespace indexpool::cli {

// A row per layer: what it stores and moves, its false alarms.
reports::Table cost_table(const verify::faults::Campaign& campaign);
// For people: a row per site and fault model, a column per layer.
reports::Table coverage_table(const verify::faults::Campaign& campaign);
// For machines: a row per site, fault model and layer, with what the layer costs.
reports::Table coverage_by_layer(const verify::faults::Campaign& campaign);
// What the campaign shows, in a few lines, and the records that did not hold.
std::string fault_summary(const verify::faults::Campaign& campaign,
                          const std::vector<Record>& records);

}  // namespace indexpool::cli
