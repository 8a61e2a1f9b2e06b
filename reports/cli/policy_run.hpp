// `indexpool run --policy P`: a published form through reference and kernels in every numeric mode,
// beside what it would take at scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::cli {

struct PolicyRun {
  std::string policy, target;
  std::vector<std::int64_t> lengths = {67, 0, 22};  // tokens; short of a pool's end, one empty
  std::int64_t tokens = 0;                          // of the prediction
};
// Records and title; `command` and the folder are the caller's.
reports::ReportInput run_policy(const PolicyRun& run, const DeviceSpec& device, Progress& progress);

}  // namespace indexpool::cli
