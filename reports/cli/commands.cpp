#include "indexpool/reports/cli/command.hpp"

namespace indexpool::cli {

std::span<const Command* const> commands() {
  static constexpr const Command* table[] = {&run_command, &verify_command, &predict_command,
                                             &report_command, &list_command};
  return table;
}

}  // namespace indexpool::cli
