// A fixed set of records, made by hand, for tests of documents.
#pragma once

#include <vector>

#include "indexpool/reports/report.hpp"

namespace indexpool::reports {

// Five operations of one case on simt, passed, with predictions at 1M tokens.
std::vector<Record> passed_records();
// The same with one failed, one untrusted, one error, one marginal, one skipped and one unsupported
// record after them.
std::vector<Record> mixed_records();
// Names and reasons made of markup, quotes, control characters and invalid UTF-8.
std::vector<Record> hostile_records();
std::vector<Curve> sample_curves();
ReportInput sample_input(std::vector<Record> records);

}  // namespace indexpool::reports
