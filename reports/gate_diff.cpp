// The difference of two baselines, line by line.
#include <algorithm>
#include <map>

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

// A longest common subsequence of sorted, mostly equal lines: greedy, by the next line that both
// have.
struct Cursor {
  const std::vector<std::string_view>& lines;
  std::multimap<std::string_view, std::size_t> places;
  explicit Cursor(const std::vector<std::string_view>& all) : lines(all) {
    for (std::size_t i = 0; i < all.size(); ++i) places.emplace(all[i], i);
  }
  // Whether `line` stands at `from` or later.
  bool ahead(std::string_view line, std::size_t from) const {
    const auto [first, last] = places.equal_range(line);
    return std::any_of(first, last, [&](const auto& place) { return place.second >= from; });
  }
};

}  // namespace

std::string baseline_diff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> old_lines = lines_of(before), new_lines = lines_of(after);
  const Cursor in_old(old_lines), in_new(new_lines);
  std::string changes;
  std::size_t removed = 0, added = 0, i = 0, j = 0;
  while (i < old_lines.size() || j < new_lines.size()) {
    const bool have_old = i < old_lines.size(), have_new = j < new_lines.size();
    if (have_old && have_new && old_lines[i] == new_lines[j]) {
      ++i, ++j;
    } else if (have_old && (!have_new || !in_new.ahead(old_lines[i], j))) {
      changes += fmt::format("- {}\n", old_lines[i++]);
      ++removed;
    } else if (have_new && (!have_old || !in_old.ahead(new_lines[j], i))) {
      changes += fmt::format("+ {}\n", new_lines[j++]);
      ++added;
    } else {  // both come later: a line moved
      changes += fmt::format("- {}\n", old_lines[i++]);
      ++removed;
    }
  }
  if (changes.empty()) return "";
  return changes + fmt::format("{} lines removed, {} added\n", removed, added);
}

}  // namespace indexpool::reports
