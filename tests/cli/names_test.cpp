#include "indexpool/reports/cli/names.hpp"

#include <cstdio>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace {

TEST(Sizes, TakeKiloMegaAndGigaOf1024) {
  EXPECT_EQ(parse_size("--tokens", "259"), 259);
  EXPECT_EQ(parse_size("--tokens", "4K"), 4096);
  EXPECT_EQ(parse_size("--tokens", "1M"), 1 << 20);
  EXPECT_EQ(parse_size("--tokens", "10m"), 10 << 20);
  EXPECT_EQ(parse_sizes("--tokens", "4K,1M,7"), (std::vector<std::int64_t>{4096, 1 << 20, 7}));
}

TEST(Sizes, RejectWhatIsNoSizeAndNameTheOption) {
  for (const char* bad : {"", "K", "-1", "1.5M", "4KB", "1T", "9223372036854775808",
                          "9007199254740993K", "1,", ",1", "1,,2", " 1"}) {
    try {
      parse_sizes("--tokens", bad);
      ADD_FAILURE() << "accepted '" << bad << "'";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("--tokens"), std::string::npos) << bad;
    }
  }
}

// What the shell hands to printf is what was quoted.
RC_GTEST_PROP(ShellQuoted, TheShellReadsTheSameWord, ()) {
  const auto word = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("ab'\"\\ $`!*?~;&|<>()[]{}#=%\n-/.")));
  const std::string command = "printf '%s' " + shell_quoted(word);
  std::FILE* pipe = popen(command.c_str(), "r");
  RC_ASSERT(pipe != nullptr);
  std::string read;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) read += static_cast<char>(c);
  RC_ASSERT(pclose(pipe) == 0);
  RC_ASSERT(read == word);
}

}  // namespace
}  // namespace indexpool::cli
