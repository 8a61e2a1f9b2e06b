// The example in the public header is what users copy: it is built with the line it gives, and run.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plugins.hpp"

namespace indexpool::verify {
namespace {

std::string read_header() {
  std::stringstream text;
  text << std::ifstream(PLUGIN_HEADER).rdbuf();
  return text.str();
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t first = text.find(from) + from.size(), last = text.find(to, first);
  return text.substr(first, last - first);
}

TEST(PluginHeader, ItsExampleBuildsWithTheLineItGivesAndPasses) {
  const std::string header = read_header();
  const std::string example = between(header, "--- topk.cpp ---\n", "--- end ---");
  ASSERT_GT(example.size(), 1000u);
  const std::filesystem::path folder = std::filesystem::path(PLUGIN_FOLDER) / "example";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "topk.cpp") << example;
  std::string line = "g++" + between(header, "     g++", "\n");
  line.replace(0, 3, std::string(PLUGIN_COMPILER) + " " + PLUGIN_COMPILER_FLAGS);
  line.replace(line.find("PREFIX/include"), 14, PLUGIN_INCLUDE);
  ASSERT_EQ(std::system(("cd '" + folder.string() + "' && " + line).c_str()), 0) << line;
  const Plugin plugin = open_plugin(folder / "libtopk.so");
  EXPECT_EQ(plugin.operations, std::vector<std::string>{"topk"});
  const std::vector<Record> records = check_plugin_problem(plugin, small_problem(), {});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].implementation, "sorting topk");
  EXPECT_EQ(records[0].verdict.status, Status::passed) << records[0].verdict.reason;
}

TEST(PluginHeader, IsC99) {
  const std::filesystem::path folder = std::filesystem::path(PLUGIN_FOLDER) / "c99";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "plugin.c")
      << "#include \"indexpool/verify/plugin.h\"\n"
         "int indexpool_plugin_abi(void) { return INDEXPOOL_PLUGIN_ABI; }\n"
         "const struct indexpool_plugin *indexpool_plugin_table(void) { return 0; }\n";
  const std::string line = std::string(PLUGIN_COMPILER) +
                           " -x c -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I " +
                           PLUGIN_INCLUDE + " plugin.c";
  EXPECT_EQ(std::system(("cd '" + folder.string() + "' && " + line).c_str()), 0) << line;
}

}  // namespace
}  // namespace indexpool::verify
