#include <fstream>

#include <gtest/gtest.h>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/journal.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

const std::vector<std::string> small_cases = {golden("fp8_small"), golden("ties_f32"),
                                              golden("short_context_f32")};

std::vector<std::string> verify_line(const std::string& out) {
  std::vector<std::string> line = {"verify", "--case"};
  line.insert(line.end(), small_cases.begin(), small_cases.end());
  line.insert(line.end(), {"--out", out});
  return line;
}

// As if the run had been killed while it wrote a record: `keep` whole lines and half of the next.
void interrupt(const std::string& folder, std::size_t keep) {
  const std::string all = read_text(folder + "/records.jsonl");
  std::size_t end = 0;
  for (std::size_t i = 0; i < keep; ++i) end = all.find('\n', end) + 1;
  std::ofstream(folder + "/records.partial.jsonl", std::ios::binary)
      << all.substr(0, end + (all.find('\n', end) - end) / 2);
  std::filesystem::remove(folder + "/records.jsonl");
}

TEST(Resume, AnInterruptedRunEndsAsIfItHadNotBeen) {
  const Folder folder;
  const std::string out = folder.file("results");
  ASSERT_EQ(indexpool(verify_line(out)).code, 0);
  const std::string whole = read_text(out + "/records.jsonl");
  EXPECT_FALSE(std::filesystem::exists(out + "/records.partial.jsonl"));
  for (const std::size_t keep : {0u, 1u, 5u, 9u}) {
    interrupt(out, keep);
    const Outcome refused = indexpool(verify_line(out));
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(contains(refused.err, "--resume")) << refused.err;
    std::vector<std::string> line = verify_line(out);
    line.push_back("--resume");
    const Outcome resumed = indexpool(line);
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(read_text(out + "/records.jsonl"), whole) << "after " << keep << " records";
    EXPECT_FALSE(std::filesystem::exists(out + "/records.partial.jsonl"));
  }
}

TEST(Resume, ARunThatFailsBeforeItsFirstRecordLeavesNothing) {
  const Folder folder;
  { const Journal journal(folder.file("results"), false); }
  EXPECT_TRUE(folder.names().empty());
}

TEST(Resume, ARunThatFailsLaterKeepsItsRecords) {
  const Folder folder;
  {
    Journal journal(folder.file("results"), false);
    journal.append({Record{}});
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"results"});
  EXPECT_TRUE(std::filesystem::exists(folder.file("results") + "/records.partial.jsonl"));
}

TEST(Resume, AFinishedRunIsNotRepeated) {
  const Folder folder;
  const std::string out = folder.file("results");
  ASSERT_EQ(indexpool(verify_line(out)).code, 0);
  std::vector<Record> records = read_records(out + "/records.jsonl");
  for (Record& record : records) record.environment.driver = "kept";  // a rerun would not know it
  write_records(out + "/records.jsonl", records);
  std::vector<std::string> line = verify_line(out);
  line.push_back("--resume");
  EXPECT_EQ(indexpool(line).code, 0);
  for (const Record& record : read_records(out + "/records.jsonl")) {
    EXPECT_EQ(record.environment.driver, "kept");
  }
}

}  // namespace
}  // namespace indexpool::cli
