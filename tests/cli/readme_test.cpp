// What the README shows is what the program does.
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

const std::string& readme() {
  static const std::string text = read_text(INDEXPOOL_SOURCE_DIR "/README.md");
  return text;
}

// The arguments of each line "./testbed COMMAND ...", but for the two that set up and test.
std::vector<std::vector<std::string>> commands() {
  std::vector<std::vector<std::string>> commands;
  std::istringstream lines(readme());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("./testbed ", 0) != 0 || line == "./testbed test") continue;
    std::istringstream words(line.substr(std::string("./testbed ").size()));
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    commands.push_back(arguments);
  }
  return commands;
}

TEST(Readme, EveryCommandWorks) {
  const auto lines = commands();
  ASSERT_GE(lines.size(), 5u);
  const Folder folder;
  for (std::vector<std::string> arguments : lines) {
    for (std::string& word : arguments) {
      if (word.starts_with("tests/") || word.starts_with("reports/")) {
        word = std::string(INDEXPOOL_SOURCE_DIR) + "/" + word;
      }
      if (word == "results" || word == "cases") word = folder.file(word);
    }
    if (arguments[0] == "run") arguments.insert(arguments.end(), {"--out", folder.file("report")});
    const Outcome outcome = indexpool(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments[0] << ": " << outcome.err << outcome.out;
  }
}

// "| pool | `pool` | passed | 0.014 | 357 µs ..." -> its cells, trimmed.
std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream parts(row.substr(1));
  for (std::string cell; std::getline(parts, cell, '|');) {
    const auto first = cell.find_first_not_of(" `"), last = cell.find_last_not_of(" `");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// "| `kpool`, trained | 0.292, 0.919 | ..." is what recall gives at 4:1, layer by layer.
TEST(Readme, ItsRecallIsWhatRecallGives) {
  const Outcome outcome =
      indexpool({"recall", "--data", "layer6,layer14,layer22", "--ratio", "4", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> layers = {"layer6", "layer14", "layer22"};
  int compared = 0;
  for (const auto& found : nlohmann::json::parse(outcome.out)) {
    const std::string how = found["how"];
    const std::string start =
        "| `" + found["policy"].get<std::string>() + (how == "fixed" ? "` |" : "`, " + how + " |");
    const auto at = readme().find(start);
    if (at == std::string::npos) continue;
    const auto row = cells(readme().substr(at, readme().find('\n', at) - at));
    const auto layer = std::find(layers.begin(), layers.end(), found["data"].get<std::string>());
    const std::string& cell = row[static_cast<std::size_t>(layer - layers.begin() + 1)];
    // Exponentials differ between libraries in the last bit, and training carries that on.
    EXPECT_NEAR(std::stod(cell), found["recall"].get<double>(), 0.004) << start;
    EXPECT_NEAR(std::stod(cell.substr(cell.find(',') + 1)), found["mass"].get<double>(), 0.004)
        << start;
    ++compared;
  }
  EXPECT_EQ(compared, 3 * 12);
}

TEST(Readme, ItsResultIsWhatRunGives) {
  const Folder folder;
  const Outcome outcome = indexpool({"run", "--out", folder.file("report"), "--format", "json"});
  int compared = 0;
  for (const auto& record : nlohmann::json::parse(outcome.out)) {
    if (record["predicted_time_s"].is_null()) continue;
    const std::string start =
        "| " + record["op"].get<std::string>() + " | `" + record["kernel"].get<std::string>();
    const auto at = readme().find(start);
    ASSERT_NE(at, std::string::npos) << "no row " << start;
    const auto row = cells(readme().substr(at, readme().find('\n', at) - at));
    EXPECT_EQ(row[2], record["status"].get<std::string>()) << start;
    const double utilisation = record["worst_error_over_bound"];
    if (utilisation > 0) {
      EXPECT_NEAR(std::stod(row[3]), utilisation, 0.0006) << start;
    } else {
      EXPECT_EQ(row[3].rfind("exact", 0), 0u) << start;
    }
    const double microseconds = record["predicted_time_s"].get<double>() * 1e6;
    EXPECT_NEAR(std::stod(row[4]), microseconds, 0.02 * microseconds) << start;
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

}  // namespace
}  // namespace indexpool::cli
