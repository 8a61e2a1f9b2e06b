#include "indexpool/reports/cli/gate_inputs.hpp"

#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

// A record that sums up others has both counts; one of a single mutant has none.
bool add_counts(const Record& record, reports::KillScore& score) {
  const auto mutants = record.values.find("mutants"), killed = record.values.find("killed");
  if (mutants == record.values.end() || killed == record.values.end()) return false;
  score.mutants += std::llround(mutants->second);
  score.killed += std::llround(killed->second);
  return true;
}

reports::KillScore score_of_records(const std::string& file) {
  reports::KillScore score;
  bool found = false;
  for (const Record& record : read_records(file)) found = add_counts(record, score) || found;
  if (!found || score.killed > score.mutants || score.mutants < 1) {
    throw ConfigError(
        fmt::format("{}: no kill score in it; expected the records of indexpool mutants, or "
                    "{{\"mutants\": 84, \"killed\": 84}}",
                    file));
  }
  return score;
}

}  // namespace

std::string read_whole(const fs::path& path, const std::string& what) {
  std::ifstream stream;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) stream.open(path, std::ios::binary);
  if (!stream.is_open()) throw ConfigError(fmt::format("cannot read {} {}", what, path.string()));
  return {std::istreambuf_iterator<char>(stream), {}};
}

reports::Resources load_resources(const std::string& file) {
  if (!file.empty()) {
    return reports::parse_resources(read_whole(file, "the table of compiled kernels"), file);
  }
  const fs::path built = INDEXPOOL_BUILT_RESOURCES;
  std::error_code ignored;
  if (fs::exists(built, ignored)) {
    reports::Resources resources = reports::parse_resources(
        read_whole(built, "the table of compiled kernels"), built.string());
    resources.source = "this build's own CUDA compiler";
    return resources;
  }
  const DataFile& checked_in = embedded_resources().front();
  reports::Resources resources =
      reports::parse_resources(checked_in.text, "kernels/resources.json");
  resources.source = "the checked-in kernels/resources.json (this build compiled none)";
  return resources;
}

reports::KillScore load_kill_score(const std::string& file) {
  const std::string text = read_whole(file, "the kill score");
  if (text.find("\"schema\"") != std::string::npos) return score_of_records(file);
  const JsonObject object = parse_json(text, file).object({"mutants", "killed"});
  reports::KillScore score;
  score.mutants = object["mutants"].integer(1);
  score.killed = object["killed"].integer(0, score.mutants);
  return score;
}

reports::Sources kernel_sources(const fs::path& root, const std::string& otherwise) {
  reports::Sources sources{root, {}, otherwise};
  for (const kernels::Kernel& kernel : kernels::kernels()) {
    const std::string name(kernel.name);
    sources.kernels[name] = "kernels/" + name + ".cuh";
  }
  return sources;
}

}  // namespace indexpool::cli
