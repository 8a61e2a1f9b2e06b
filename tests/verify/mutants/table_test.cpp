// The table of mutants is what it should be, and a bad row is refused by name.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/mutants/mutant.hpp"

namespace indexpool::verify {
namespace {

std::string kernel_source(const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(INDEXPOOL_SOURCE_DIR) / "kernels" / file;
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(MutantTable, HoldsAtLeastEightyMutantsAndEveryClass) {
  const auto table = mutant_table();
  EXPECT_GE(table.size(), 80u);
  std::map<std::string, int> by_class;
  for (const Mutant& mutant : table) ++by_class[mutant.fault];
  for (const MutantClass& known : mutant_classes())
    EXPECT_GE(by_class[std::string(known.name)], 3) << known.name;
}

TEST(MutantTable, EveryTextIsReplacedExactlyOnce) {
  for (const Mutant& mutant : mutant_table()) {
    const std::string source = kernel_source(mutant.file);
    ASSERT_EQ(times(source, mutant.find), 1) << mutant.id << " in " << mutant.file;
    std::string mutated = source;
    mutated.replace(source.find(mutant.find), mutant.find.size(), mutant.with);
    EXPECT_NE(mutated, source) << mutant.id;
    if (mutant.race_at.empty()) continue;
    EXPECT_GE(times(mutated, mutant.race_at), 1) << mutant.id;
  }
}

TEST(MutantTable, EveryKernelThatIsNamedExists) {
  std::set<std::string> mutated;
  for (const Mutant& mutant : mutant_table()) {
    mutated.insert(mutant.kernel);
    if (mutant.kernel == "planner") continue;
    EXPECT_NE(kernels::find_kernel("simt", mutant.kernel), nullptr) << mutant.id;
  }
  for (const char* kernel : {"pool", "seed_tail", "append", "quantize_query", "logits_mma",
                             "logits_fma", "topk", "planner"})
    EXPECT_TRUE(mutated.contains(kernel)) << kernel;
}

// A mutant is compiled for one instance.
TEST(MutantTable, ProblemsOfASetHaveOneModeAndTheSmallestHeadDim) {
  for (const std::string& name : mutant_problem_names()) {
    const Suite suite = mutant_problems(name);
    EXPECT_EQ(suite.name, name);
    for (const Problem& problem : suite.problems) {
      EXPECT_EQ(problem.mode, suite.problems.front().mode) << name;
      EXPECT_EQ(problem.indexer.index_head_dim, 32) << name;
    }
  }
}

TEST(MutantTable, MissingBarriersSayWhereTheRaceIs) {
  for (const Mutant& mutant : mutant_table()) {
    const bool by_order = mutant.killed_by == "lane_order";
    EXPECT_TRUE(!by_order || !mutant.race_at.empty()) << mutant.id;
  }
}

TEST(MutantTable, EquivalentMutantsAreFewAndProven) {
  int equivalent = 0;
  for (const Mutant& mutant : mutant_table()) {
    if (mutant.equivalent.empty()) continue;
    ++equivalent;
    EXPECT_GT(mutant.equivalent.size(), 60u) << mutant.id << ": that is no proof";
  }
  EXPECT_LE(equivalent, 3);
}

std::string row(const std::string& key, const std::string& value) {
  std::map<std::string, std::string> fields{{"id", "\"a\""},           {"class", "\"scale\""},
                                            {"kernel", "\"pool\""},    {"file", "\"f\""},
                                            {"find", "\"x\""},         {"with", "\"y\""},
                                            {"why", "\"because\""},    {"problems", "\"pool_fp8\""},
                                            {"killed_by", "\"scale\""}};
  fields[key] = value;
  std::string text;
  for (const auto& [name, field] : fields)
    text += (text.empty() ? "\"" : ", \"") + name + "\": " + field;
  return "{\"mutants\": [{" + text + "}]}";
}

void expect_refused(const std::string& text, const std::string& part) {
  try {
    parse_mutants(text, "rows.json");
    ADD_FAILURE() << "accepted " << text;
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rows.json"), std::string::npos) << error.what();
  }
}

TEST(MutantTable, ABadRowIsRefusedWithItsPlace) {
  EXPECT_EQ(parse_mutants(row("id", "\"a\""), "rows.json").size(), 1u);
  expect_refused(row("class", "\"scael\""), "scale");
  expect_refused(row("killed_by", "\"quantizer\""), "quantiser");
  expect_refused(row("problems", "\"pool_fp\""), "pool_fp8");
  expect_refused(row("find", "\"y\""), "/mutants/0/find");
  expect_refused(row("id", "\"Has Blanks\""), "/mutants/0/id");
  expect_refused(row("far", "1"), "/mutants/0/far");
  expect_refused(row("unknown", "1"), "unknown");
}

TEST(MutantTable, AnUnknownIdGetsANearOne) {
  const auto table = mutant_table();
  EXPECT_EQ(find_mutant(table, "scale_447").fault, "scale");
  try {
    find_mutant(table, "scale_44");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("scale_447"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace indexpool::verify
