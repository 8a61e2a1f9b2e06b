#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/axis.hpp"
#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/plots.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

constexpr double width = 1040, label_width = 210, exact_width = 64, right_margin = 24;
constexpr double row_height = 24, top = 34, bottom = 30;

struct Mark {
  const Record* record;
  const Check* check;
};
// One line of the plot: all outcomes of one check of one operation. Checks that compare bits and
// passed share the last line of their operation.
struct Line {
  std::string op, check;
  std::vector<Mark> marks;
  std::string exact_checks;  // names, when it is the shared one
};

bool passed_exactly(const Line& line) {
  return std::all_of(line.marks.begin(), line.marks.end(), [](const Mark& mark) {
    return mark.check->utilisation == 0 && mark.check->status == Status::passed;
  });
}

void add_shared(std::vector<Line>& out, Line& shared) {
  if (!shared.marks.empty()) out.push_back(std::move(shared));
  shared = {};
}

std::vector<Line> lines_of(const std::vector<Record>& records) {
  std::map<std::tuple<int, std::string, std::string>, Line> lines;
  for (const Record& record : records) {
    for (const Check& check : record.verdict.checks) {
      if (check.status == Status::skipped) continue;  // nothing to place on the axis
      Line& line = lines[{operation_rank(record.op), record.op, check.name}];
      line.op = record.op;
      line.check = check.name;
      line.marks.push_back({&record, &check});
    }
  }
  std::vector<Line> out;
  Line shared;
  for (auto& [key, line] : lines) {
    if (shared.op != line.op) add_shared(out, shared);
    if (!passed_exactly(line)) {
      out.push_back(std::move(line));
      continue;
    }
    shared.op = line.op;
    shared.check = "exact checks";
    shared.exact_checks += (shared.exact_checks.empty() ? "" : ", ") + line.check;
    shared.marks.insert(shared.marks.end(), line.marks.begin(), line.marks.end());
  }
  add_shared(out, shared);
  return out;
}

LogAxis utilisation_axis(const std::vector<Line>& lines) {
  double low = 1e-3, high = 10;
  for (const Line& line : lines) {
    for (const Mark& mark : line.marks) {
      const double value = mark.check->utilisation;
      if (!(value > 0) || !std::isfinite(value)) continue;
      low = std::min(low, std::max(value, 1e-9));
      high = std::max(high, std::min(value, 1e9));
    }
  }
  return decade_axis(low, high, label_width + exact_width, width - right_margin);
}

std::string frame(const LogAxis& axis, double plot_bottom) {
  const double bound = axis.at(1);
  std::string out = fmt::format(
      "<rect class=\"beyond\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
      bound, top - 8, axis.to - bound, plot_bottom - top + 8);
  for (const double tick : decades(axis)) {
    const double x = axis.at(tick);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        x, top - 8, plot_bottom, plot_bottom + 18, tick);
  }
  out += fmt::format(
      "<line class=\"bound\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
      "<text class=\"bound-label\" x=\"{0:.1f}\" y=\"{3:.1f}\" "
      "text-anchor=\"middle\">bound</text>\n"
      "<text class=\"tick\" x=\"{4:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">exact</text>\n",
      bound, top - 8, plot_bottom, top - 15, label_width + exact_width / 2);
  return out;
}

std::string mark(double x, double y, Status status, const std::string& title) {
  return fmt::format(
      "<circle class=\"mark {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
      "r=\"4.5\"><title>{}</title></circle>\n",
      to_string(status), x, y, escape_xml(title));
}

std::string marks_of(const Line& line, const LogAxis& axis, double y) {
  const double exact_x = label_width + exact_width / 2;
  if (!line.exact_checks.empty()) {
    return mark(exact_x, y, Status::passed,
                fmt::format("{}: {}: no difference in {} checks", line.op, line.exact_checks,
                            format_count(static_cast<std::int64_t>(line.marks.size()))));
  }
  std::string out;
  std::set<std::pair<long, Status>> drawn;
  for (const auto& [record, check] : line.marks) {
    const double x = check->utilisation == 0 ? exact_x : axis.at(check->utilisation);
    if (!drawn.insert({std::lround(x), check->status}).second) continue;
    out += mark(x, y, check->status,
                fmt::format("{}: {} / {}: {}, error over bound {}, {} compared{}{}",
                            record->case_name, line.op, line.check, to_string(check->status),
                            format_utilisation(check->utilisation), format_count(check->compared),
                            check->reason.empty() ? "" : ". ", shortened(check->reason, 300)));
  }
  return out;
}

}  // namespace

std::string utilisation_plot(const std::vector<Record>& records) {
  const std::vector<Line> lines = lines_of(records);
  if (lines.empty()) return "";
  const LogAxis axis = utilisation_axis(lines);
  const double plot_bottom = top + row_height * static_cast<double>(lines.size());
  std::string out = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"Worst error over bound of every check\">\n",
      width, plot_bottom + bottom);
  out += frame(axis, plot_bottom);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double y = top + row_height * (static_cast<double>(i) + 0.5);
    const bool first = i == 0 || lines[i].op != lines[i - 1].op;
    if (first && i > 0) {
      out += fmt::format(
          "<line class=\"grid\" x1=\"0\" y1=\"{0:.1f}\" x2=\"{1:.1f}\" y2=\"{0:.1f}\"/>\n",
          y - row_height / 2, axis.to);
    }
    out += fmt::format(
        "<text class=\"row-op\" x=\"0\" y=\"{0:.1f}\">{1}</text>"
        "<text class=\"row-label\" x=\"{2:.1f}\" y=\"{0:.1f}\" text-anchor=\"end\">{3}</text>\n",
        y + 4, first ? escape_xml(shortened(lines[i].op, 20)) : "", label_width - 8,
        escape_xml(shortened(lines[i].check, 20)));
    out += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       label_width + exact_width + 6, y + 4,
                       escape_xml(shortened(lines[i].exact_checks, 110)));
    out += marks_of(lines[i], axis, y);
  }
  return out + "</svg>\n";
}

}  // namespace indexpool::reports
