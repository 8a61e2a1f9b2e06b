#include "plugins.hpp"

#include <stdexcept>

namespace indexpool::verify {

std::string plugin_path(const std::string& name) {
  return std::string(PLUGIN_FOLDER) + "/" + name + ".so";
}

PluginLimits short_limits() {
  PluginLimits limits;
  limits.seconds = 20;
  return limits;
}

Problem small_problem() {
  Problem problem;
  problem.indexer = {2, 32, 8, 4, true};
  problem.lengths = {13, 6};
  return problem;
}

std::vector<Record> check_small(const std::string& name, const PluginLimits& limits) {
  const Plugin plugin = open_plugin(plugin_path(name), limits);
  Options options;
  options.repeat = "indexpool check --plugin " + name;
  return check_plugin_problem(plugin, small_problem(), options);
}

const Record& record_of(const std::vector<Record>& records, std::string_view op) {
  for (const Record& record : records) {
    if (record.op == op) return record;
  }
  throw std::runtime_error("no record of " + std::string(op));
}

const Check* find_check(const Verdict& verdict, std::string_view name) {
  for (const Check& check : verdict.checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace indexpool::verify
