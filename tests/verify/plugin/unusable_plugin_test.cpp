// Shared objects that cannot be used get one record that says why.
#include <gtest/gtest.h>

#include "plugins.hpp"

namespace indexpool::verify {
namespace {

struct Expected {
  const char* plugin;
  std::vector<std::string> reason;
};
void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.plugin; }

class UnusablePlugin : public testing::TestWithParam<Expected> {};

TEST_P(UnusablePlugin, GetsOneRecordThatSaysWhy) {
  PluginLimits limits = short_limits();
  if (contains(GetParam().plugin, "hangs")) limits.seconds = 2;
  const std::vector<Record> records = check_small(GetParam().plugin, limits);
  ASSERT_EQ(records.size(), 1u);
  const Record& record = records.front();
  EXPECT_EQ(record.op, "load");
  EXPECT_EQ(record.verdict.status, Status::error);
  EXPECT_EQ(record.implementation, std::string(GetParam().plugin) + ".so");
  for (const std::string& part : GetParam().reason) {
    EXPECT_TRUE(contains(record.verdict.reason, part)) << record.verdict.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Loading, UnusablePlugin,
    testing::Values(
        Expected{"wrong_abi", {"built for plugin ABI 42, this program has 1"}},
        Expected{"no_table_symbol", {"exports no indexpool_plugin_table", "extern \"C\""}},
        Expected{"null_table", {"indexpool_plugin_table returned a null pointer"}},
        Expected{"wild_table", {"SIGSEGV in indexpool_plugin_abi or indexpool_plugin_table"}},
        Expected{"no_operation", {"offers no operation"}},
        Expected{"wrong_accumulation", {"accumulation 17, expected 0 to 3"}},
        Expected{"undefined_symbol", {"could not be loaded", "function_that_no_library_defines"}},
        Expected{"constructor_crashes", {"SIGSEGV while it was loaded"}},
        Expected{"constructor_hangs", {"still ran after 2 s, while it was loaded"}},
        Expected{"constructor_exits", {"ended its process (exit status 5) while it was loaded"}},
        Expected{"abi_throws", {"threw std::logic_error: not today"}}));

}  // namespace
}  // namespace indexpool::verify
