#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/verify/recall/compare.hpp"

namespace indexpool::verify::recall {
namespace {

// Of policies(), those whose selections are another's.
struct Same {
  std::string_view name, why, as;
};
constexpr Same same[] = {
    {"kpool_weights", "computes what kpool computes, in two kernels", "kpool"},
    {"composite_half", "at ratio 4 pools two of the four for each of two outputs: composite at 2",
     "composite"},
    {"composite_fixed", "on neighbours is a sum with given weights", "plain"},
    {"plain_raw", "differs from plain by one factor of all scores, and no ranking sees that",
     "plain"}};

}  // namespace

std::string_view to_string(Form form) {
  switch (form) {
    case Form::fixed:
      return "fixed";
    case Form::untrained:
      return "untrained";
    case Form::trained:
      return "trained";
    case Form::unpooled:
      return "unpooled";
  }
  throw InternalError("a Form outside its enumeration");
}

const std::vector<Policy>& compared_policies() {
  static const std::vector<Policy> rows = {
      {"kpool", "a weight for each channel, from a gate on the token's features", true},
      {"composite", "one learnt weight for each place in a group", true},
      {"additive", "position, content (1 + cos) / 2 and age", true},
      {"additive_raw", "position, content cos and age: weights may be negative", true},
      {"gated", "sigmoid of the group's mean features and the key", true},
      {"tfidf", "accesses (of real activations: by the queries learnt from), position and content",
       true},
      {"csa", "as kpool over two windows, then RMSNorm; a pool stands for its second window", true},
      {"mean", "equal weights"},
      {"last", "the last key of each group"},
      {"plain", "weights that fall by equal steps, 0.4 0.3 0.2 0.1 for four (composite_fixed)"},
      {"block_max", "the largest unpooled score of each group: needs every token's score", false,
       Form::unpooled},
      {"best_pools", "the pools that hold most of the best tokens: no pooling finds more", false,
       Form::unpooled},
      {"oracle", "the best tokens themselves", false, Form::unpooled}};
  return rows;
}

const Policy& find_compared(std::string_view name) {
  std::vector<std::string> names;
  for (const Policy& policy : compared_policies()) {
    if (policy.name == name) return policy;
    names.push_back(policy.name);
  }
  for (const Same& other : same) {
    if (other.name == name)
      throw ConfigError(fmt::format("{} {}: ask for {}", name, other.why, other.as));
  }
  throw ConfigError(fmt::format("unknown policy \"{}\"{} (compared: {})", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace indexpool::verify::recall
