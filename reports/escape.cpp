#include "indexpool/reports/escape.hpp"

#include <cstddef>
#include <cstdint>

namespace indexpool::reports {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

// Bytes of the well-formed UTF-8 sequence at the front of `text`; 0 when there is none (Unicode
// standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  if (first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return 0;  // U+FFFE, U+FFFF
  return length;
}

template <class Replace>
std::string replaced(std::string_view text, const Replace& replacement_of) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    const std::string_view other = replacement_of(c);
    if (other.empty()) {
      out += c;
    } else {
      out += other;
    }
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    const bool control = static_cast<std::uint8_t>(c) < 0x20 && c != '\t' && c != '\n';
    if (length == 0 || control || c == '\x7f') {
      out += replacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string escape_xml(std::string_view text) {
  return replaced(printable(text), [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  });
}

std::string escape_markdown(std::string_view text) {
  return replaced(printable(text), [](char c) -> std::string_view {
    switch (c) {
      case '|':
        return "\\|";
      case '\\':
        return "\\\\";
      case '`':
        return "\\`";
      case '*':
        return "\\*";
      case '[':
        return "\\[";
      case ']':
        return "\\]";
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '\n':
        return " ";
      case '\t':
        return " ";
      default:
        return {};
    }
  });
}

std::string escape_csv(std::string_view text) {
  const std::string clean = printable(text);
  if (clean.find_first_of(",\"\n") == std::string::npos) return clean;
  return '"' +
         replaced(clean,
                  [](char c) -> std::string_view {
                    return c == '"' ? std::string_view("\"\"") : std::string_view();
                  }) +
         '"';
}

std::string escape_dot(std::string_view text) {
  return replaced(printable(text), [](char c) -> std::string_view {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      default:
        return {};
    }
  });
}

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit < 3 ? 0 : limit - 3;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "\xe2\x80\xa6";
}

}  // namespace indexpool::reports
