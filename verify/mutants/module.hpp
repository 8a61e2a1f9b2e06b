// The compiled mutants, a shared object of their own: they take as long to build as the kernels and
// nobody needs them to verify something.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"

namespace indexpool::verify {

// One of them is null.
struct MutantCode {
  std::string_view id;
  const kernels::Kernel* kernel;
  const kernels::Planner* planner;
};

// What the shared object exports, and the sizes by which a stale one shows.
struct MutantExport {
  std::int64_t kernel_bytes, arguments_bytes, planner_bytes;
  const MutantCode* rows;
  std::int64_t count;
};
inline constexpr const char* mutant_export_name = "indexpool_mutants";
using MutantExportFunction = const MutantExport* (*)();

class MutantModule {
 public:
  // EnvironmentError with the line that builds it when the file is absent, cannot be loaded or was
  // built from other headers.
  explicit MutantModule(const std::filesystem::path& path);
  const MutantCode& code(std::string_view id) const;  // EnvironmentError: built from another table
  std::span<const MutantCode> all() const { return rows_; }

 private:
  std::span<const MutantCode> rows_;  // stays loaded until the program ends
};

}  // namespace indexpool::verify
