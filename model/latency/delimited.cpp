#include "indexpool/model/latency/delimited.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t most_count = std::int64_t{1} << 40;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

TextCell trimmed(std::string_view line, std::size_t start, std::size_t end, std::int64_t number) {
  while (start < end && blank(line[start])) ++start;
  while (end > start && blank(line[end - 1])) --end;
  return {line.substr(start, end - start), number, static_cast<std::int64_t>(start) + 1};
}

TextRow at_commas(std::string_view line, std::int64_t number) {
  TextRow row;
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = std::min(line.find(',', start), line.size());
    row.push_back(trimmed(line, start, comma, number));
    if (comma == line.size()) return row;
    start = comma + 1;
  }
}

TextRow at_blanks(std::string_view line, std::int64_t number) {
  TextRow row;
  std::size_t start = 0;
  while (start < line.size()) {
    std::size_t end = start;
    while (end < line.size() && !blank(line[end])) ++end;
    if (end > start) row.push_back(trimmed(line, start, end, number));
    start = end + 1;
  }
  return row;
}

template <class Split>
std::vector<TextRow> split_lines(std::string_view text, Split split) {
  std::vector<TextRow> rows;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      rows.push_back(split(line, number));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

}  // namespace

std::vector<TextRow> split_commas(std::string_view text) { return split_lines(text, at_commas); }
std::vector<TextRow> split_blanks(std::string_view text) { return split_lines(text, at_blanks); }

void CellReader::fail(const TextCell& at, std::string_view message) const {
  throw ConfigError(fmt::format("{}:{}:{}: {}", file_, at.line, at.column, message));
}

double CellReader::number(const TextCell& cell, std::string_view what,
                          std::string_view unit) const {
  std::string_view digits = cell.text;
  if (!unit.empty() && digits.ends_with(unit)) {
    digits.remove_suffix(unit.size());
  } else if (!unit.empty()) {
    fail(cell, fmt::format("found \"{}\" for {}, expected a number followed by \"{}\"", cell.text,
                           what, unit));
  }
  double value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    fail(cell, fmt::format("found \"{}\" for {}, expected a number", cell.text, what));
  }
  return value;
}

double CellReader::positive(const TextCell& cell, std::string_view what,
                            std::string_view unit) const {
  const double value = number(cell, what, unit);
  if (value <= 0) {
    fail(cell, fmt::format("found {} for {}, expected a number above 0", cell.text, what));
  }
  return value;
}

std::int64_t CellReader::count(const TextCell& cell, std::string_view what,
                               std::int64_t low) const {
  std::int64_t value = 0;
  const char* last = cell.text.data() + cell.text.size();
  const auto [end, problem] = std::from_chars(cell.text.data(), last, value);
  if (problem != std::errc() || end != last || value < low || value > most_count) {
    fail(cell, fmt::format("found \"{}\" for {}, expected a whole number from {} to 2^40",
                           cell.text, what, low));
  }
  return value;
}

void CellReader::width(const TextRow& row, std::size_t cells, std::string_view layout) const {
  if (row.size() == cells) return;
  fail(row.size() > cells ? row[cells] : row.back(),
       fmt::format("found {} cells in the line, expected {}: {}", row.size(), cells, layout));
}

HeadedTable::HeadedTable(std::string file, std::string_view text)
    : reader_(file), file_(std::move(file)), rows_(split_commas(text)) {
  if (rows_.empty()) throw ConfigError(file_ + ": an empty file, expected a heading line");
  heading_ = rows_.front();
  rows_.erase(rows_.begin());
  for (std::size_t i = 0; i < heading_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (heading_[i].text == heading_[j].text) {
        reader_.fail(heading_[i], fmt::format("the column \"{}\" appears twice", heading_[i].text));
      }
    }
  }
  for (const TextRow& row : rows_) {
    reader_.width(row, heading_.size(), "as many as the heading line has");
  }
}

bool HeadedTable::has(std::string_view column) const {
  for (const TextCell& cell : heading_) {
    if (cell.text == column) return true;
  }
  return false;
}

std::size_t HeadedTable::index(std::string_view column) const {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < heading_.size(); ++i) {
    if (heading_[i].text == column) return i;
    known.emplace_back(heading_[i].text);
  }
  throw ConfigError(fmt::format("{}:{}: no column \"{}\" in the heading line{} (columns: {})",
                                file_, heading_.front().line, column, did_you_mean(column, known),
                                fmt::join(known, ", ")));
}

const TextCell& HeadedTable::cell(std::size_t row, std::string_view column) const {
  return rows_[row][index(column)];
}
std::string HeadedTable::text(std::size_t row, std::string_view column) const {
  return std::string(cell(row, column).text);
}
double HeadedTable::number(std::size_t row, std::string_view column) const {
  return reader_.number(cell(row, column), column);
}
std::int64_t HeadedTable::count(std::size_t row, std::string_view column, std::int64_t low) const {
  return reader_.count(cell(row, column), column, low);
}
void HeadedTable::fail(std::size_t row, std::string_view column, std::string_view message) const {
  reader_.fail(cell(row, column), message);
}

}  // namespace indexpool
