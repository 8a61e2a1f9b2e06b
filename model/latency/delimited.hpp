// Rows of a text file, with the place of each cell for errors. Internal to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace indexpool {

struct TextCell {
  std::string_view text;              // without surrounding blanks
  std::int64_t line = 0, column = 0;  // from 1
};
using TextRow = std::vector<TextCell>;

// Lines split at commas, or at runs of blanks; empty lines are left out.
std::vector<TextRow> split_commas(std::string_view text);
std::vector<TextRow> split_blanks(std::string_view text);

// Reads cells of one file. Everything that is not as expected is a ConfigError
// "<file>:<line>:<column>: found ..., expected ...".
class CellReader {
 public:
  explicit CellReader(std::string file) : file_(std::move(file)) {}
  [[noreturn]] void fail(const TextCell& at, std::string_view message) const;
  // A decimal number and, right after it, `unit` (may be empty).
  double number(const TextCell& cell, std::string_view what, std::string_view unit = "") const;
  double positive(const TextCell& cell, std::string_view what, std::string_view unit = "") const;
  std::int64_t count(const TextCell& cell, std::string_view what, std::int64_t low = 1) const;
  // ConfigError unless the row has `cells` cells.
  void width(const TextRow& row, std::size_t cells, std::string_view layout) const;

 private:
  std::string file_;
};

// A table with a heading line, columns found by name.
class HeadedTable {
 public:
  HeadedTable(std::string file, std::string_view text);
  bool has(std::string_view column) const;
  std::size_t rows() const { return rows_.size(); }
  std::int64_t line(std::size_t row) const { return rows_[row][0].line; }
  const TextCell& cell(std::size_t row, std::string_view column) const;
  std::string text(std::size_t row, std::string_view column) const;
  double number(std::size_t row, std::string_view column) const;
  std::int64_t count(std::size_t row, std::string_view column, std::int64_t low = 1) const;
  [[noreturn]] void fail(std::size_t row, std::string_view column, std::string_view message) const;

 private:
  std::size_t index(std::string_view column) const;

  CellReader reader_;
  std::string file_;
  TextRow heading_;
  std::vector<TextRow> rows_;
};

}  // namespace indexpool
