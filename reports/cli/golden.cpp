#include "indexpool/reports/cli/golden.hpp"

#include <system_error>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace fs = std::filesystem;

fs::path golden_case(const std::string& name) {
  const std::string file = name + ".safetensors";
  std::error_code no_proc;
  const fs::path program = fs::read_symlink("/proc/self/exe", no_proc);
  const fs::path folders[] = {
      INDEXPOOL_GOLDEN_SOURCE,
      program.parent_path() / ".." / INDEXPOOL_GOLDEN_INSTALLED,  // a moved prefix
      fs::path(INDEXPOOL_INSTALL_PREFIX) / INDEXPOOL_GOLDEN_INSTALLED};
  std::string looked;
  for (const fs::path& folder : folders) {
    fs::path path = (folder / file).lexically_normal();
    std::error_code unreadable;
    if (fs::exists(path, unreadable)) return path;
    looked += "\n  " + path.string();
  }
  throw ConfigError(fmt::format("the golden case {} is not in any of:{}\nName a case with --case.",
                                file, looked));
}

}  // namespace indexpool::cli
