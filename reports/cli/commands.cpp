#include "indexpool/reports/cli/command.hpp"

namespace indexpool::cli {

std::span<const Command* const> commands() {
  static constexpr const Command* table[] = {
      &run_command,    &verify_command,      &predict_command, &export_command,
      &check_command,  &report_command,      &list_command,    &faults_command,
      &gate_command,   &utilisation_command, &mutants_command, &field_command,
      &score_command,  &calibrate_command,   &measure_command, &train_command,
      &recall_command, &strategies_command};
  return table;
}

}  // namespace indexpool::cli
