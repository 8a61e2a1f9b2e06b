// Kernels that come as a shared object (verify/plugin.h), run in a process of their own and judged
// like any other: a crash is a verdict, not an accident.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// Of one operation's process. A plugin is the user's own program, not an enemy: the limits hold
// against mistakes, not against malice.
struct PluginLimits {
  double seconds = 60;                                  // of wall-clock time
  std::int64_t memory_bytes = std::int64_t{4} << 30;    // resident, private to the process
  std::int64_t printed_bytes = std::int64_t{64} << 20;  // to stdout and stderr
};

struct Plugin {
  std::filesystem::path path, worker;
  PluginLimits limits;
  std::string name;                     // its own, or the file's
  std::vector<std::string> operations;  // offered ones
  std::string accumulation;             // of its dot products, as in a contract of foreign outputs
  // Why it cannot be used: it did not load, crashed on the way, or is of another ABI.
  std::optional<Verdict> refusal;

  bool offers(std::string_view operation) const;
};
// All operations a plugin may offer, in the order in which they are judged.
std::vector<std::string> plugin_operations();

// Loads it once, in a process of its own, to see what it offers. Throws ConfigError when the file
// is absent or no shared object of this machine, EnvironmentError when no process can be started.
Plugin open_plugin(const std::filesystem::path& path, const PluginLimits& limits = {});
// What to report of a plugin that was refused.
Record refusal_record(const Plugin& plugin, const Options& options);

// A Record for each offered operation, whatever it does: `error` when it crashed, hung, or broke
// the contract of the call, else judged by its values. What an operation gets is what the plugin's
// own operations before it gave, where those were right, and the reference's elsewhere. Of options
// it uses seed, repeat and progress.
std::vector<Record> check_plugin(const Plugin& plugin, const Case& test_case,
                                 const Options& options, bool about_ties = false);
std::vector<Record> check_plugin_problem(const Plugin& plugin, const Problem& problem,
                                         const Options& options);

}  // namespace indexpool::verify
