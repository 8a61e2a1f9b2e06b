// The options that describe one problem, spelt as repeat_line prints them.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/problem.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace indexpool::cli {

struct ProblemOptions {
  Problem problem;
  std::string lengths;  // "259" or "5,64,1K"
  bool no_tail = false;
  std::vector<CLI::Option*> shape;     // what makes it a problem of its own
  std::vector<CLI::Option*> schedule;  // apply to case files as well

  void declare(CLI::App& app);
  bool any_shape() const;  // one of `shape` was given
  bool any_schedule() const;
  Problem parsed() const;  // ConfigError
};

}  // namespace indexpool::cli
