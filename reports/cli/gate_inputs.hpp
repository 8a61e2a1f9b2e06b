// What the gate reads beside records: the baseline, tables of compiled kernels, kill scores.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/data.hpp"
#include "indexpool/reports/gate.hpp"
#include "indexpool/reports/sarif.hpp"

namespace indexpool {
std::span<const DataFile> embedded_resources();  // kernels/resources.json
}

namespace indexpool::cli {

// Each throws ConfigError naming the file.
std::string read_whole(const std::filesystem::path& path, const std::string& what);
// `file`, or (empty) the table of this build's own compiler if a toolkit made one, else the one
// that was checked in.
reports::Resources load_resources(const std::string& file);
// scores.json of `indexpool mutants --out`.
std::vector<reports::KillScore> load_kill_scores(const std::string& file);
// Of the kernels that come with the program; `otherwise` for all others.
reports::Sources kernel_sources(const std::filesystem::path& root, const std::string& otherwise);

}  // namespace indexpool::cli
