// A command of the executable: one row of a table, one file each.
#pragma once

#include <functional>
#include <span>

namespace CLI {
class App;
}

namespace indexpool::cli {

// Exit codes, the same for every command.
enum Exit : int {
  exit_passed = 0,
  exit_failed = 1,       // a verdict failed
  exit_usage = 2,        // a bad option, name or file
  exit_environment = 3,  // no device, no permission, no space
  exit_untrusted = 4     // nothing was proven: vacuous checks, nothing ran
};

struct Command {
  const char* name;
  const char* purpose;
  const char* examples;  // shown under --help
  // Adds the options to `app`; what it returns runs once they are parsed and gives the exit code.
  std::function<int()> (*declare)(CLI::App& app);
};

extern const Command run_command, verify_command, predict_command, report_command, list_command;
extern const Command faults_command;
extern const Command gate_command, utilisation_command;
extern const Command mutants_command;
extern const Command export_command, check_command;
extern const Command field_command;
extern const Command score_command;
extern const Command measure_command;
extern const Command calibrate_command;
extern const Command train_command;
extern const Command recall_command;
extern const Command strategies_command;
std::span<const Command* const> commands();

}  // namespace indexpool::cli
