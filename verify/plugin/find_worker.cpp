#include <string>
#include <unistd.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/plugin/process.hpp"

namespace indexpool::verify::plugin {

std::filesystem::path find_worker() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path name = INDEXPOOL_PLUGIN_WORKER_NAME;
  const std::filesystem::path folder = program.parent_path();
  const std::filesystem::path places[] = {
      folder / name, folder.parent_path() / INDEXPOOL_PLUGIN_WORKER_INSTALLED / name,
      std::filesystem::path(INDEXPOOL_INSTALL_PREFIX) / INDEXPOOL_PLUGIN_WORKER_INSTALLED / name,
      INDEXPOOL_PLUGIN_WORKER_BUILT};
  std::string looked;
  for (const std::filesystem::path& place : places) {
    if (access(place.c_str(), X_OK) == 0) return place;
    looked += "\n  " + place.string();
  }
  throw EnvironmentError("plugins run in a process of their own, " + name.string() +
                         ", which is in none of these places:" + looked);
}

}  // namespace indexpool::verify::plugin
