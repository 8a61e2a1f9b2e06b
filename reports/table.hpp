// A table that is data first: every cell has a text for people and a value for machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::reports {

using CellValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

struct Cell {
  std::string text;              // empty: shown as "-"
  CellValue value;               // monostate: null
  std::optional<Status> status;  // colours the cell where colour is wanted

  Cell() = default;
  Cell(std::string shown) : text(shown), value(std::move(shown)) {}  // NOLINT: a cell is a text
  Cell(std::string shown, CellValue raw) : text(std::move(shown)), value(std::move(raw)) {}
};
Cell status_cell(Status status);

struct Column {
  std::string key;      // in JSON and CSV, with the unit: "predicted_time_s"
  std::string heading;  // in tables
  bool right = false;   // numbers are aligned to the right
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

enum class Format { table, json, csv, md };

// table: aligned columns, ANSI colours when `colour`. json: an array of objects. csv: RFC 4180 with
// a heading line. md: a GitHub table. Every format ends with a line break.
std::string render(const Table& table, Format format, bool colour = false);

// Columns a terminal needs for `text`: code points, no control characters.
std::size_t display_width(std::string_view text);

}  // namespace indexpool::reports
