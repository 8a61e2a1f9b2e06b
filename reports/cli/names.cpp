#include "indexpool/reports/cli/names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace {

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += between;
    text += name;
  }
  return text;
}

}  // namespace

std::string unknown_text(std::string_view what, const std::string& name,
                         const std::vector<std::string>& known) {
  const std::vector<std::string> near = near_names(name, known);
  return near.empty()
             ? fmt::format("unknown {} '{}'. Known: {}", what, name, joined(known, ", "))
             : fmt::format("unknown {} '{}': did you mean {}?", what, name, joined(near, " or "));
}

void require_known(std::string_view what, const std::string& name,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw ConfigError(unknown_text(what, name, known));
  }
}

std::int64_t parse_size(std::string_view option, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  const std::int64_t scale = suffix.empty()                   ? 1
                             : suffix == "K" || suffix == "k" ? std::int64_t{1} << 10
                             : suffix == "M" || suffix == "m" ? std::int64_t{1} << 20
                             : suffix == "G" || suffix == "g" ? std::int64_t{1} << 30
                                                              : 0;
  if (problem != std::errc() || scale == 0 || value < 0 ||
      value > std::numeric_limits<std::int64_t>::max() / scale) {
    throw ConfigError(fmt::format(
        "{}: found '{}', expected a whole number, with K, M or G for powers of 1024 (4K is 4096)",
        option, text));
  }
  return value * scale;
}

std::vector<std::int64_t> parse_sizes(std::string_view option, const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    sizes.push_back(parse_size(option, text.substr(start, comma - start)));
    start = comma + 1;
  }
  return sizes;
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./,=+:@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace indexpool::cli
