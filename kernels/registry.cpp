// Which kernel takes a launch.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels {

const Kernel& find_kernel(std::string_view target, const OpArgs& args) {
  std::string refusals;
  for (const Kernel& kernel : kernels()) {
    if (kernel.target != target) continue;
    const std::optional<std::string> reason = kernel.unsupported(args);
    if (!reason) return kernel;
    refusals += fmt::format("\n  {}: {}", kernel.name, *reason);
  }
  if (refusals.empty())
    throw ConfigError(fmt::format("no kernel was built for target \"{}\"", target));
  throw ConfigError(
      fmt::format("no kernel of target \"{}\" takes these arguments:{}", target, refusals));
}

const Kernel* find_kernel(std::string_view target, std::string_view name) {
  const auto table = kernels();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Kernel& kernel) {
    return kernel.target == target && kernel.name == name;
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace indexpool::kernels
