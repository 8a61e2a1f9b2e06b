// SARIF 2.1.0 (OASIS standard, 27 March 2020): findings with file and line, as code hosts show
// them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/gate.hpp"

namespace indexpool::reports {

// Where in a source file, relative to the project's root; line 0: the file as a whole.
struct SourcePlace {
  std::string file;
  int line = 0;
};
// The first "file.ext:line" in a reason, as the executor writes it. An empty file: none.
SourcePlace place_in(std::string_view reason);

struct Finding {
  std::string rule;   // "executor/divergent_barrier", "check/bound", "gate/traffic"
  std::string level;  // "error", "warning", "note"
  std::string message;
  SourcePlace place;   // relative; an empty file: none is known
  std::string repeat;  // command line
};

// Where the sources of kernels are: by implementation name, and `otherwise` for all others (empty:
// findings about them have no place). Paths in reasons are made relative to `root`.
struct Sources {
  std::filesystem::path root;
  std::map<std::string, std::string> kernels;
  std::string otherwise;
};

// One finding per check that did not hold and per verdict without checks; untrusted ones are
// warnings.
std::vector<Finding> record_findings(const std::vector<Record>& records, const Sources& sources);
// One per regression of the gate that is not a verdict (those are record_findings').
std::vector<Finding> gate_findings(const Gate& gate, const Sources& sources);

// A code host shows at most 5,000 results of a run: those beyond are counted in a notification.
inline constexpr std::size_t most_sarif_results = 5000;
std::string sarif(const std::vector<Finding>& findings, const std::string& version,
                  const std::string& command);

// A path as a relative URI: '/' between segments, other characters percent-encoded. A path outside
// the root keeps what follows "indexpool/", or its file name.
std::string relative_uri(const std::filesystem::path& path, const std::filesystem::path& root);

// Workflow commands of GitHub Actions ("::error file=...,line=...::text"), at most `most` of a
// level, which is what the service shows.
inline constexpr std::size_t most_annotations = 10;
std::string annotations(const std::vector<Finding>& findings, std::size_t most = most_annotations);

}  // namespace indexpool::reports
