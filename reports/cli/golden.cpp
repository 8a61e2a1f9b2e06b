#include "indexpool/reports/cli/golden.hpp"

#include <system_error>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace fs = std::filesystem;

namespace {

fs::path shipped(const std::string& what, const std::string& file, const char* source,
                 const char* installed, const char* advice) {
  std::error_code no_proc;
  const fs::path program = fs::read_symlink("/proc/self/exe", no_proc);
  const fs::path folders[] = {source,
                              program.parent_path() / ".." / installed,  // a moved prefix
                              fs::path(INDEXPOOL_INSTALL_PREFIX) / installed};
  std::string looked;
  for (const fs::path& folder : folders) {
    fs::path path = (folder / file).lexically_normal();
    std::error_code unreadable;
    if (fs::exists(path, unreadable)) return path;
    looked += "\n  " + path.string();
  }
  throw ConfigError(fmt::format("the {} {} is not in any of:{}\n{}", what, file, looked, advice));
}

}  // namespace

fs::path golden_case(const std::string& name) {
  return shipped("golden case", name + ".safetensors", INDEXPOOL_GOLDEN_SOURCE,
                 INDEXPOOL_GOLDEN_INSTALLED, "Name a case with --case.");
}

fs::path activations_file() {
  return shipped("file of activations", "smollm2.safetensors", INDEXPOOL_RECALL_SOURCE,
                 INDEXPOOL_RECALL_INSTALLED, "Name one with --activations.");
}

}  // namespace indexpool::cli
