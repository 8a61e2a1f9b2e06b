#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw ConfigError(fmt::format("cannot read the suite file {}; a built-in suite is one of {}",
                                  path, fmt::join(suite_names(), ", ")));
  }
  return {std::istreambuf_iterator<char>(file), {}};
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
    return parse_suite(read_file(name_or_path), name_or_path);
  }
  throw ConfigError(fmt::format("there is no suite '{}'; near names: {}", name_or_path,
                                fmt::join(near_names(name_or_path, suite_names()), ", ")));
}

}  // namespace indexpool::verify
