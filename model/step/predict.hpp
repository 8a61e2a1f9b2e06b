// The time of a whole decode step or prefill chunk, operation by operation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/cost.hpp"
#include "indexpool/model/step/operation.hpp"
#include "indexpool/model/step/plan.hpp"

namespace indexpool::step {

struct StepOptions {
  bool graph_launch = true;  // launches of a CUDA graph, as engines do in decode
  bool two_streams = true;   // the indexer and shared experts on a second stream
  bool measured = true;      // measured implementations where the device has them
};

// Declares the indexer's kernels of one layer at a size, in order, on one rank: `size.tokens` is
// the rank's share of the context. Empty: the model has no indexer.
using IndexerWork = std::function<void(const Size& size, std::vector<Declared>& declared)>;

struct OperationForecast {
  std::string group, name, kernel;
  std::int64_t count = 1;
  Lane lane = Lane::main;
  std::string detail;       // what it multiplies, reads or sends, at this size
  std::string source;       // of the shape, or of the measured implementation
  ReadBytes reads;          // one run
  Prediction prediction;    // one run, with its terms
  std::string refusal;      // no kernel takes it: its time is 0
  Seconds time, low, high;  // all runs
};

struct StepForecast {
  Phase phase = Phase::decode;
  Size size;
  std::vector<OperationForecast> operations;
  Seconds time, low, high;  // ends of intervals add: as if all constants erred the same way
  Seconds hidden;           // by the second stream; the operations' sum less this is `time`
  std::string bound_by;     // what limits the operations that take the largest share of the time
  ReadBytes reads;          // of the whole step
  Bytes hbm_bytes;
  bool complete = true;  // no operation was refused
  // Of a prefill its rows; of a decode step a token of each sequence, whatever drafts add to them.
  double tokens_per_s() const;
};

StepForecast predict_step(const Architecture& architecture, const DeviceSpec& device,
                          const Serving& serving, const Size& size, const IndexerWork& indexer,
                          const StepOptions& options = {});

}  // namespace indexpool::step
