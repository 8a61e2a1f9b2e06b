// The parts of the comparison, one per file of its own. Internal to the layer.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "indexpool/reports/gate.hpp"

namespace indexpool::reports {

void compare_entries(const GateState& baseline, const GateState& now, Gate& gate);
void compare_traffic(const GateState& baseline, const GateState& now, Gate& gate);
void compare_checks(const GateState& baseline, const GateState& now, Gate& gate);
void compare_resources(const GateState& baseline, const GateState& now, Gate& gate);
void compare_kills(const GateState& baseline, const GateState& now, Gate& gate);

using EntryKey = std::tuple<std::string, std::string, std::string, std::string>;
std::map<EntryKey, const GateEntry*> by_key(const std::vector<GateEntry>& entries);

std::string place_of(const GateEntry& entry);  // "pool / pool on simt"
// Whether the record says anything about the kernel.
inline bool judged(Status status) { return status == Status::passed || status == Status::marginal; }

}  // namespace indexpool::reports
