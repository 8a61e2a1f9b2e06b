// A page about a model's memory: the waterfall of its terms, how they grow with the context, and
// every term in a table.
#pragma once

#include <string>
#include <vector>

#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {

// One term of a waterfall: terms of a kind share a colour.
struct WaterfallStep {
  std::string kind, name;
  double bytes = 0;
};

// Bars one below the other, each beginning where the one above ends, then their sum; and a line at
// what may be used. Static SVG, every bar explains itself in a <title>. Empty without steps.
std::string waterfall_plot(const std::vector<WaterfallStep>& steps, double usable);

struct MemoryPage {
  std::string title, command;  // the line that made it
  struct Waterfall {
    std::string heading;
    std::vector<WaterfallStep> steps;
    double usable = 0;
  };
  std::vector<Waterfall> waterfalls;
  std::vector<Curve> curves;  // bytes against tokens
  Table terms;
  std::vector<std::string> sections = {};  // further ones as markup, before the terms
};
// One self-contained page; the markup is also well-formed XML.
std::string memory_html(const MemoryPage& page);

}  // namespace indexpool::reports
