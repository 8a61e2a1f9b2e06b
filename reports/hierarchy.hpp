// The memory hierarchy as a Graphviz graph: what each operation of a decode step moves on every
// level, and how long that level alone would take.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::reports {

// One row of levels for each operation of the longest decode step that records predict (see
// report.hpp for the values it needs): device memory, L2, shared memory, registers, and the units
// that compute. Edges carry bytes or operations and times; the one that limits the operation is
// red, or its name is when no level does (launch, latencies). Empty without such records.
std::string hierarchy_dot(const std::vector<Record>& records);

}  // namespace indexpool::reports
