#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

std::string read_file(const std::string& path) {
  // Reading a folder throws an exception of the stream's own.
  std::ifstream file;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) file.open(path, std::ios::binary);
  if (!file.is_open()) {
    throw ConfigError(fmt::format("cannot read the suite file {}; a built-in suite is one of {}",
                                  path, fmt::join(suite_names(), ", ")));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Before anything runs. Fills belong to this layer, so parse_suite() cannot know them.
Suite with_known_fills(Suite suite, const std::string& file) {
  for (const Problem& problem : suite.problems) {
    try {
      fill_purpose(problem.fill);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", file, error.what()));
    }
  }
  return suite;
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const DataFile& file : embedded_suites()) names.emplace_back(file.name);
  return names;
}

Suite load_suite(const std::string& name_or_path) {
  for (const DataFile& file : embedded_suites()) {
    if (file.name == name_or_path) return parse_suite(file.text, file.name);
  }
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) {
    return with_known_fills(parse_suite(read_file(name_or_path), name_or_path), name_or_path);
  }
  if (name_or_path == "field")
    throw ConfigError("'field' is no suite of problems; its scenarios run with: indexpool field");
  const std::vector<std::string> near = near_names(name_or_path, suite_names());
  throw ConfigError(fmt::format("there is no suite '{}'; {}: {}", name_or_path,
                                near.empty() ? "built in are" : "near names",
                                fmt::join(near.empty() ? suite_names() : near, ", ")));
}

Suite load_shipped_suite(const std::string& name_or_path) {
  Suite suite = load_suite(name_or_path);
  std::erase_if(suite.problems, [](const Problem& problem) {
    return problem.policy != shipped_policy || !problem.attention.empty();
  });
  if (suite.problems.empty()) {
    throw ConfigError(
        fmt::format("suite {} has published forms and attention only; kernels from elsewhere take "
                    "the shipped form",
                    name_or_path));
  }
  return suite;
}

}  // namespace indexpool::verify
