// indexpool check --plugin: kernels in a shared object, on a suite, case files or one problem.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/cli/problem_options.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::cli {

struct PluginCheck {
  std::string library;  // --plugin; empty: not given
  std::string suite, memory_limit;
  std::vector<std::string> cases;
  double time_limit_s = 0;
  ProblemOptions problem;
  std::vector<CLI::Option*> others;  // those that mean nothing without --plugin

  // Declares --mode as well, which means something without --plugin too.
  void declare(CLI::App& app);
  bool given() const { return !library.empty(); }
  // Throws ConfigError when an option of a plugin's check came without --plugin.
  void require_none() const;
};

// Runs it, writes the report to `out` unless that is empty, and gives the exit code.
int check_plugin_with(const PluginCheck& check, reports::Format format, const std::string& out);

}  // namespace indexpool::cli
