// A page about how well predictions meet a table of measured times.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/plot_scatter.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

struct ScorePage {
  std::string title, command;  // the line that made it
  struct Fact {
    std::string value, label;
  };
  std::vector<Fact> facts;
  std::vector<std::string> provenance;  // sentences: what was fitted on which rows
  std::vector<ScatterPoint> points;
  Table errors, worst, constants;
};
// One self-contained page; the markup is also well-formed XML.
std::string score_html(const ScorePage& page);

}  // namespace indexpool::reports
