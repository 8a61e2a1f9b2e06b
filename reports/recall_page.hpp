// A page about recall: for each data set, which pooling finds what the unpooled scores ask for.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/plot_lines.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

struct RecallPage {
  std::string title, command;      // the line that made it
  std::vector<std::string> notes;  // sentences: what was asked, what the numbers are
  struct Ranking {
    std::string heading;
    Table table;
  };
  struct Part {  // a data set
    std::string name;
    std::vector<std::string> notes;
    std::vector<LinePlot> plots;
    std::vector<Ranking> rankings;  // the first is open, the others unfold
  };
  std::vector<Part> parts;
  Table policies;  // what each is
};
// One self-contained page; the markup is also well-formed XML.
std::string recall_html(const RecallPage& page);

}  // namespace indexpool::reports
