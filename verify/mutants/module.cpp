#include "indexpool/verify/mutants/module.hpp"

#include <algorithm>
#include <dlfcn.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw EnvironmentError(what +
                         "; build the mutants with: cmake --build BUILD_FOLDER --target "
                         "indexpool_mutants");
}

}  // namespace

MutantModule::MutantModule(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    fail(fmt::format("the compiled mutants {} are not there", path.string()));
  // Its own copies of the executor and of the kernels' host code: nothing is resolved elsewhere.
  void* const library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(fmt::format("cannot load the compiled mutants: {}", ::dlerror()));
  const auto exported =
      reinterpret_cast<MutantExportFunction>(::dlsym(library, mutant_export_name));
  if (exported == nullptr) fail(fmt::format("{} holds no mutants", path.string()));
  const MutantExport& all = *exported();
  if (all.kernel_bytes != sizeof(kernels::Kernel) ||
      all.arguments_bytes != sizeof(kernels::OpArgs) ||
      all.planner_bytes != sizeof(kernels::Planner))
    fail(fmt::format("{} was built from other headers than this program", path.string()));
  rows_ = {all.rows, static_cast<std::size_t>(all.count)};
}

const MutantCode& MutantModule::code(std::string_view id) const {
  const auto found =
      std::ranges::find_if(rows_, [&](const MutantCode& row) { return row.id == id; });
  if (found == rows_.end())
    fail(
        fmt::format("the compiled mutants hold no \"{}\": they were built from another table", id));
  return *found;
}

}  // namespace indexpool::verify
