#include "indexpool/verify/plugin/last_lines.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify::plugin {
namespace {

std::string last_lines(const std::string& printed) {
  LastLines lines;
  lines.add(printed);
  return lines.text();
}

RC_GTEST_PROP(LastLines, DoNotDependOnHowTheTextCameIn, (const std::string& text)) {
  LastLines lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, text.size() - at + 1);
    lines.add(std::string_view(text).substr(at, size));
    at += size;
  }
  RC_ASSERT(lines.text() == last_lines(text));
  RC_ASSERT(lines.bytes() == static_cast<std::int64_t>(text.size()));
}

RC_GTEST_PROP(LastLines, ArePrintableAndShort, (const std::string& text)) {
  const std::string shown = last_lines(text);
  for (const char c : shown) RC_ASSERT(c >= ' ' && c <= '~');
  RC_ASSERT(shown.size() <= 600u + 5 * 2);
}

TEST(LastLines, AreTheLastFiveJoinedByBars) {
  EXPECT_EQ(last_lines(""), "");
  EXPECT_EQ(last_lines("\n\n"), "");
  EXPECT_EQ(last_lines("one"), "one");
  EXPECT_EQ(last_lines("one\ntwo\n"), "one | two");
  EXPECT_EQ(last_lines("1\n2\n3\n4\n5\n6\n7\n"), "3 | 4 | 5 | 6 | 7");
  EXPECT_EQ(last_lines("a\tb\x1b[0m\xff"), "a?b?[0m?");
}

TEST(LastLines, OfALongTextAreItsEnd) {
  std::string text(100'000, 'x');
  text += "\nthe end\n";
  const std::string shown = last_lines(text);
  EXPECT_EQ(shown.substr(shown.size() - 11), "x | the end");
  EXPECT_LE(shown.size(), 610u);
}

}  // namespace
}  // namespace indexpool::verify::plugin
