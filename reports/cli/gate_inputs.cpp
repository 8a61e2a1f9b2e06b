#include "indexpool/reports/cli/gate_inputs.hpp"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace fs = std::filesystem;

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

std::vector<reports::KillScore> load_kill_scores(const std::string& file) {
  return reports::parse_kill_scores(read_whole(file, "the kill scores"), file);
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
