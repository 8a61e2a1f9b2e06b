// A folder of cases for kernels that run elsewhere: manifest.json, the cases, and where their
// outputs belong.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "indexpool/verify/foreign/foreign.hpp"

namespace indexpool::verify {

inline constexpr int manifest_schema = 1;

// A case of the folder. Paths are relative to it.
struct ManifestEntry {
  std::string id;    // of its files, unique in the folder
  std::string name;  // of the case
  std::string inputs, outputs;
};

// Cases are made one at a time: only one is in memory.
struct ExportJob {
  std::string id;
  std::function<ForeignCase()> make;
};
// Writes the folder under a temporary name, then renames it. Throws ConfigError when it exists and
// holds something; `progress` may be empty.
void write_export(const std::filesystem::path& folder, const std::vector<ExportJob>& jobs,
                  const std::function<void(const std::string&)>& progress);

// Strict: ConfigError for a missing manifest, a newer schema, an unknown key, a path that leaves
// the folder, a case without its file, a file among the outputs that no case lists.
std::vector<ManifestEntry> read_manifest(const std::filesystem::path& folder);

// The outputs of an entry; none where the file is absent.
ForeignOutputs read_foreign_outputs(const std::filesystem::path& folder,
                                    const ManifestEntry& entry);

}  // namespace indexpool::verify
