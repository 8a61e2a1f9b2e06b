// The profiler's CSV: quoted cells, numbers with separators of thousands, a line of units.
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/counters.hpp"

namespace indexpool::verify::timing {
namespace {

struct Line {
  std::int64_t number = 0;
  std::vector<std::string> cells;
};

// RFC 4180: a doubled quote inside a quoted cell is one.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    // The profiler's own remarks.
    if (line.empty() || line == "\r" || line.starts_with("==")) continue;
    lines.push_back({number, cells_of(line)});
  }
  return lines;
}

class CounterTable {
 public:
  CounterTable(std::string_view text, std::string file)
      : file_(std::move(file)), lines_(lines_of(text)) {
    while (heading_ < lines_.size() && (lines_[heading_].cells[0] != "ID")) ++heading_;
    if (heading_ + 1 >= lines_.size()) {
      throw ConfigError(file_ +
                        ": found no heading that begins with \"ID\" and a line of units, "
                        "expected the output of ncu --csv --page raw");
    }
    for (std::size_t i = 0; i < heading().size(); ++i)
      if (heading()[i] == "Kernel Name") kernel_ = i;
    if (kernel_ == none) fail(lines_[heading_], 0, "found no column \"Kernel Name\"");
  }

  std::vector<CountedLaunch> launches() const {
    std::vector<CountedLaunch> all;
    for (std::size_t i = heading_ + 2; i < lines_.size(); ++i) all.push_back(launch(lines_[i]));
    if (all.empty()) throw ConfigError(file_ + ": found no profiled launch");
    return all;
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  const std::vector<std::string>& heading() const { return lines_[heading_].cells; }
  const std::vector<std::string>& units() const { return lines_[heading_ + 1].cells; }

  [[noreturn]] void fail(const Line& line, std::size_t column, const std::string& message) const {
    throw ConfigError(fmt::format("{}:{}:{}: {}", file_, line.number, column + 1, message));
  }

  CountedLaunch launch(const Line& line) const {
    if (line.cells.size() != heading().size()) {
      fail(line, 0,
           fmt::format("found {} cells, expected {} as in the heading", line.cells.size(),
                       heading().size()));
    }
    CountedLaunch out;
    out.function = line.cells[kernel_];
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      // Metrics are named unit__what.how; the profiler adds attributes of the device and the like.
      if (!heading()[i].ends_with(".sum")) continue;
      out.metrics[heading()[i]] = number(line, i) * factor(i);
    }
    return out;
  }

  double number(const Line& line, std::size_t column) const {
    std::string digits;
    for (const char c : line.cells[column])
      if (c != ',') digits += c;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || !(value >= 0)) {
      fail(
          line, column,
          fmt::format("{}: found \"{}\", expected a count", heading()[column], line.cells[column]));
    }
    return value;
  }

  double factor(std::size_t column) const {
    static constexpr std::pair<std::string_view, double> known[] = {
        {"", 1},           {"byte", 1},   {"Kbyte", 1e3}, {"Mbyte", 1e6},    {"Gbyte", 1e9},
        {"inst", 1},       {"sector", 1}, {"request", 1}, {"cycle", 1},      {"ns", 1e-9},
        {"us", 1e-6},      {"ms", 1e-3},  {"s", 1},       {"nsecond", 1e-9}, {"usecond", 1e-6},
        {"msecond", 1e-3}, {"second", 1}};
    const std::string unit = column < units().size() ? units()[column] : "";
    for (const auto& [name, value] : known)
      if (unit == name) return value;
    fail(lines_[heading_ + 1], column,
         fmt::format("{}: found the unit \"{}\", expected bytes, counts or seconds; give ncu "
                     "--print-units base",
                     heading()[column], unit));
  }

  std::string file_;
  std::vector<Line> lines_;
  std::size_t heading_ = 0, kernel_ = none;
};

}  // namespace

std::vector<CountedLaunch> read_counters(std::string_view text, const std::string& file) {
  return CounterTable(text, file).launches();
}

}  // namespace indexpool::verify::timing
