// What a layer of attention takes on a device: the declared work of its kernels, put through the
// cost model. They declare bytes, sectors, passes of shared memory and flop; neither instructions
// nor chains of dependent ones, so that times are those of moving and multiplying alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/reports/cli/forecast.hpp"

namespace indexpool::cli {

struct LaunchForecast {
  OperationForecast of;
  std::string phase;        // "decode step", "whole prompt", ...
  std::int64_t tokens = 0;  // that the launch handles
  bool shown = true;        // beside the operation's record: the step or prompt that is asked for
};
// With the problem's layer, mode and sizes, at a context of `tokens`:
//   hybrid     one new token, its selection full or all of the context; linear attention also in
//              chunks, over a prompt's first prefill_chunk tokens
//   composite  the whole prompt, causal, in one launch each
//   feedback   a step over index_kpool vectors of every token and head, and its weights
std::vector<LaunchForecast> attention_forecast(const Problem& problem, std::int64_t tokens,
                                               const DeviceSpec& device);

}  // namespace indexpool::cli
