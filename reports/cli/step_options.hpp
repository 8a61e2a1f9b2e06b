// The options that say how a step runs, for predictions of its time.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/step/predict.hpp"

namespace CLI {
class App;
}

namespace indexpool::cli {

struct StepOptions {
  std::string phase = "all", launch = "auto";
  bool one_stream = false, expert_parallel = false;

  void declare(CLI::App& app);
  void require_valid() const;  // ConfigError for names that are unknown
  std::vector<step::Phase> phases() const;
  step::StepOptions parsed(step::Phase phase) const;
};

}  // namespace indexpool::cli
