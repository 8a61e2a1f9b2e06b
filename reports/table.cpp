#include "indexpool/reports/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/status_style.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t markdown_cell_limit = 120;  // bytes; keeps a report of any names readable

const std::string& shown(const Cell& cell) {
  static const std::string absent = "-";
  return cell.text.empty() ? absent : cell.text;
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].heading);
    for (const auto& row : table.rows) width = std::max(width, display_width(shown(row[c])));
    widths.push_back(width);
  }
  return widths;
}

void trim_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string text_table(const Table& table, bool colour) {
  const std::vector<std::size_t> widths = column_widths(table);
  std::string headings, rule, body;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string gap = c == 0 ? "" : "  ";
    headings += gap;
    headings += padded(table.columns[c].heading, widths[c], table.columns[c].right);
    rule += gap;
    for (std::size_t i = 0; i < widths[c]; ++i) rule += "─";
  }
  trim_right(headings);
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string cell = padded(printable(shown(row[c])), widths[c], table.columns[c].right);
      std::replace(cell.begin(), cell.end(), '\n', ' ');
      if (colour && row[c].status) {
        cell = fmt::format("{}{}\x1b[0m", style(*row[c].status).ansi, cell);
      }
      if (c > 0) line += "  ";
      line += cell;
    }
    trim_right(line);
    body += line + '\n';
  }
  if (colour) headings = fmt::format("\x1b[1m{}\x1b[0m", headings);
  return fmt::format("{}\n{}\n{}", headings, rule, body);
}

nlohmann::ordered_json json_value(const CellValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return printable(v);
        } else if constexpr (std::is_same_v<T, double>) {
          // JSON has no infinities: the text keeps what a null would hide.
          if (!std::isfinite(v)) return fmt::format("{}", v);
          return v;
        } else {
          return v;
        }
      },
      value);
}

std::string json_table(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      object[table.columns[c].key] = json_value(row[c].value);
    }
    rows.push_back(std::move(object));
  }
  return rows.dump(2) + '\n';
}

std::string csv_value(const CellValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return escape_csv(*text);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return "";
}

std::string csv_table(const Table& table) {
  std::string out;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) out += ',';
    out += escape_csv(table.columns[c].key);
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out += ',';
      out += csv_value(row[c].value);
    }
    out += '\n';
  }
  return out;
}

std::string markdown_table(const Table& table) {
  std::string headings = "|", rule = "|", body;
  for (const Column& column : table.columns) {
    headings += ' ' + escape_markdown(column.heading) + " |";
    rule += column.right ? "---:|" : "---|";
  }
  for (const auto& row : table.rows) {
    body += '|';
    for (const Cell& cell : row) {
      body += ' ' + escape_markdown(shortened(shown(cell), markdown_cell_limit)) + " |";
    }
    body += '\n';
  }
  return headings + '\n' + rule + '\n' + body;
}

}  // namespace

Cell status_cell(Status status) {
  Cell cell(std::string(to_string(status)));
  cell.text = std::string(style(status).symbol) + ' ' + cell.text;
  cell.status = status;
  return cell;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xc0) != 0x80;
  }));
}

std::string render(const Table& table, Format format, bool colour) {
  switch (format) {
    case Format::json:
      return json_table(table);
    case Format::csv:
      return csv_table(table);
    case Format::md:
      return markdown_table(table);
    case Format::table:
      break;
  }
  return text_table(table, colour);
}

}  // namespace indexpool::reports
