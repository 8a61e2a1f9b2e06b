// Predictions without words for many sizes of one model on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/step/predict.hpp"

namespace indexpool::step {

// Everything but the size is settled once; predict() then says the time and interval that
// predict_step() says for the same size. Operations that depend on the batch alone keep their times
// from one context length to the next. One thread at a time: each takes a copy.
class PreparedStep {
 public:
  PreparedStep(const Architecture& architecture, const DeviceSpec& device, const Serving& serving,
               IndexerWork indexer, const StepOptions& options = {});
  PreparedStep(const PreparedStep& other);
  PreparedStep& operator=(const PreparedStep& other);
  ~PreparedStep();

  // `tokens` of each of `sequences`, as size_of().
  CostNumbers predict(std::int64_t tokens, std::int64_t sequences);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace indexpool::step
