// A page about one training run: what it reached, its curves, every epoch.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/plot_lines.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

struct TrainPage {
  std::string title, command;  // the line that made it
  struct Fact {
    std::string value, label;
  };
  std::vector<Fact> facts;
  std::vector<std::string> notes;  // sentences: what was learnt from what, and by which rule
  std::vector<LinePlot> plots;
  Table epochs, parameters;
};
// One self-contained page; the markup is also well-formed XML.
std::string train_html(const TrainPage& page);

}  // namespace indexpool::reports
