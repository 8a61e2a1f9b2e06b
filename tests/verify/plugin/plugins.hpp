// The plugins of this folder, and short ways to run them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/problem.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/plugin/plugin.hpp"

namespace indexpool::verify {

std::string plugin_path(const std::string& name);

// Long enough for a busy machine, short enough for a test that hangs by mistake.
PluginLimits short_limits();

// 13 and 6 tokens: 4 pools, 19 rows, quantised.
Problem small_problem();

// Records of a plugin on the small problem.
std::vector<Record> check_small(const std::string& name,
                                const PluginLimits& limits = short_limits());

const Record& record_of(const std::vector<Record>& records, std::string_view op);
const Check* find_check(const Verdict& verdict, std::string_view name);

bool contains(std::string_view text, std::string_view part);

}  // namespace indexpool::verify
