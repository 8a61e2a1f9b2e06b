#include "indexpool/verify/plugin/last_lines.hpp"

namespace indexpool::verify::plugin {
namespace {

constexpr std::size_t most_kept = 4096, most_shown = 600;
constexpr int most_lines = 5;

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

void LastLines::add(std::string_view text) {
  bytes_ += static_cast<std::int64_t>(text.size());
  if (text.size() > most_kept) text.remove_prefix(text.size() - most_kept);
  kept_ += text;
  if (kept_.size() > most_kept) kept_.erase(0, kept_.size() - most_kept);
}

std::string LastLines::text() const {
  std::string_view rest = kept_;
  while (!rest.empty() && rest.back() == '\n') rest.remove_suffix(1);
  std::size_t first = rest.size();
  for (int newlines = 0; first > 0; --first) {
    if (rest[first - 1] == '\n' && ++newlines == most_lines) break;
  }
  rest.remove_prefix(first);
  if (rest.size() > most_shown) rest.remove_prefix(rest.size() - most_shown);
  std::string shown;
  for (const char c : rest) {
    if (c == '\n') {
      shown += " | ";
    } else {
      shown += printable({&c, 1});
    }
  }
  return shown;
}

}  // namespace indexpool::verify::plugin
