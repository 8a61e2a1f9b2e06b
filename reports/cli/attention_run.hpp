// `indexpool run --attention L`: a layer of attention through reference and kernels in every
// storage mode, beside what its launches would take at scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"

namespace indexpool::cli {

struct AttentionRun {
  std::string attention, target;
  std::vector<std::int64_t> lengths = {67, 0, 22};  // tokens; short of a chunk's end, one empty
  std::int64_t tokens = 0;                          // of the prediction
};
// Records and title; `command` and the folder are the caller's.
reports::ReportInput run_attention(const AttentionRun& run, const DeviceSpec& device,
                                   Progress& progress);

}  // namespace indexpool::cli
