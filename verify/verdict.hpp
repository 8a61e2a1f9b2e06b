// From checks to a verdict, and from a verdict to a record.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// The status is the worst of the checks', the reason that of the first check that has it.
Verdict assemble(std::vector<Check> checks);
// A verdict without checks: unsupported, error, skipped.
Verdict refuse(Status status, std::string reason);

// Everything of a record but its verdict.
Record start_record(const Case& test_case, const Options& options, Op op);
// What was launched, and how much it moved.
void describe_run(const OpRun& run, Record& record);

}  // namespace indexpool::verify
