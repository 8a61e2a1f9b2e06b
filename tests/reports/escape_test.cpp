#include "indexpool/reports/escape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "markup.hpp"

namespace indexpool::reports {
namespace {

// The fields of one CSV line, as RFC 4180 reads them.
std::vector<std::string> read_csv(const std::string& text) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      fields.back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += text[i];
    }
  }
  return fields;
}

RC_GTEST_PROP(Escape, AnyBytesMakeWellFormedXml, (const std::string& bytes)) {
  const std::string text = escape_xml(bytes);
  RC_ASSERT(markup_problem("<a b=\"" + text + "\">" + text + "</a>").empty());
  RC_ASSERT(printable(text) == text);
}

RC_GTEST_PROP(Escape, CsvFieldsReadBackWhatIsPrintable,
              (const std::string& a, const std::string& b)) {
  const std::vector<std::string> fields = read_csv(escape_csv(a) + "," + escape_csv(b));
  RC_ASSERT(fields.size() == 2u);
  RC_ASSERT(fields[0] == printable(a));
  RC_ASSERT(fields[1] == printable(b));
}

RC_GTEST_PROP(Escape, MarkdownCellsStayInTheirCell, (const std::string& bytes)) {
  const std::string text = escape_markdown(bytes);
  for (std::size_t i = 0; i < text.size(); ++i) {
    RC_ASSERT(text[i] != '\n');
    RC_ASSERT(text[i] != '<');
    if (text[i] == '\\') {
      ++i;  // escapes what follows
    } else {
      RC_ASSERT(text[i] != '|');
      RC_ASSERT(text[i] != '`');
    }
  }
}

RC_GTEST_PROP(Escape, DotStringsEndWhereTheyShould, (const std::string& bytes)) {
  const std::string text = escape_dot(bytes);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      RC_ASSERT(i < text.size());
    } else {
      RC_ASSERT(text[i] != '"');
    }
  }
}

RC_GTEST_PROP(Escape, ShortenedTextFitsAndStaysUtf8, (const std::string& bytes)) {
  const std::size_t limit = *rc::gen::inRange<std::size_t>(3, 40);
  const std::string clean = printable(bytes), text = shortened(clean, limit);
  RC_ASSERT(text.size() <= limit);
  RC_ASSERT(printable(text) == text);
  RC_ASSERT(clean.size() > limit || text == clean);
}

TEST(Escape, InvalidUtf8BecomesReplacementCharacters) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(printable("µ–✓"), "µ–✓");
  EXPECT_EQ(printable("\xff"), mark);
  EXPECT_EQ(printable("\xc0\xaf"), mark + mark);                        // overlong '/'
  EXPECT_EQ(printable("\xed\xa0\x80"), mark + mark + mark);             // a surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), mark + mark + mark + mark);  // above U+10FFFF
  EXPECT_EQ(printable("a\x1b[31m"), "a" + mark + "[31m");
  EXPECT_EQ(printable(std::string_view("\0", 1)), mark);
}

}  // namespace
}  // namespace indexpool::reports
