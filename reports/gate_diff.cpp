// The difference of two baselines, line by line.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "indexpool/reports/gate.hpp"

namespace indexpool::reports {
namespace {

// The last line of a list has no comma: adding one after it is no change.
std::string_view content(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(content(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

using Lines = std::span<const std::string_view>;

// Cells of the table below; beyond, all lines in between are shown as removed and added.
constexpr std::size_t most_cells = std::size_t{1} << 26;

// Lengths of the longest common subsequences of the lines from (i, j) on, row by row.
class CommonLengths {
 public:
  CommonLengths(Lines before, Lines after) : width_(after.size() + 1) {
    if ((before.size() + 1) > most_cells / width_) return;
    lengths_.resize((before.size() + 1) * width_);
    for (std::size_t i = before.size(); i-- > 0;) {
      for (std::size_t j = after.size(); j-- > 0;) {
        lengths_[i * width_ + j] =
            before[i] == after[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  bool known() const { return !lengths_.empty(); }
  std::uint32_t at(std::size_t i, std::size_t j) const { return lengths_[i * width_ + j]; }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> lengths_;
};

struct Changes {
  std::string text;
  std::size_t removed = 0, added = 0;
  void remove(std::string_view line) {
    text += fmt::format("- {}\n", line);
    ++removed;
  }
  void add(std::string_view line) {
    text += fmt::format("+ {}\n", line);
    ++added;
  }
};

Changes changes_between(Lines before, Lines after) {
  const CommonLengths common(before, after);
  Changes changes;
  std::size_t i = 0, j = 0;
  while (i < before.size() && j < after.size()) {
    if (common.known() && before[i] == after[j]) {
      ++i, ++j;
    } else if (!common.known() || common.at(i + 1, j) >= common.at(i, j + 1)) {
      changes.remove(before[i++]);
    } else {
      changes.add(after[j++]);
    }
  }
  while (i < before.size()) changes.remove(before[i++]);
  while (j < after.size()) changes.add(after[j++]);
  return changes;
}

}  // namespace

std::string baseline_diff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> old_lines = lines_of(before), new_lines = lines_of(after);
  Lines old_rest = old_lines, new_rest = new_lines;
  while (!old_rest.empty() && !new_rest.empty() && old_rest.front() == new_rest.front()) {
    old_rest = old_rest.subspan(1), new_rest = new_rest.subspan(1);
  }
  while (!old_rest.empty() && !new_rest.empty() && old_rest.back() == new_rest.back()) {
    old_rest = old_rest.first(old_rest.size() - 1), new_rest = new_rest.first(new_rest.size() - 1);
  }
  const Changes changes = changes_between(old_rest, new_rest);
  if (changes.text.empty()) return "";
  return changes.text + fmt::format("{} lines removed, {} added\n", changes.removed, changes.added);
}

}  // namespace indexpool::reports
