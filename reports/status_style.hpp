// How a status looks and what it means: one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "indexpool/model/record.hpp"

namespace indexpool::reports {

struct StatusStyle {
  Status status;
  std::string_view symbol;
  std::string_view verdict;  // as a headline over the whole report
  std::string_view meaning;  // one sentence for the glossary
  std::string ansi;          // terminal colour
};

std::span<const StatusStyle> status_styles();  // the worst first
const StatusStyle& style(Status status);

}  // namespace indexpool::reports
