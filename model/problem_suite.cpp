// Suites: {"name", "why", "cases": [{axis: [values, ...], ...}, ...]}. A case stands for the
// cartesian product of its axes; an absent axis has its default.
#include <ranges>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t most_problems = 1'000'000;  // more is a typing mistake, and memory

std::vector<std::int64_t> read_lengths(const JsonValue& value) {
  std::vector<std::int64_t> lengths;
  for (const JsonValue& length : value.array()) lengths.push_back(length.integer(0));
  return lengths;
}

struct Axis {
  std::string_view key;
  void (*set)(const JsonValue& value, Problem& problem);
};

// The first axis varies slowest.
constexpr Axis axes[] = {
    {"policy", [](const JsonValue& v, Problem& p) { p.policy = v.text(); }},
    {"attention", [](const JsonValue& v, Problem& p) { p.attention = v.text(); }},
    {"mode", [](const JsonValue& v, Problem& p) { p.mode = v.text(); }},
    {"fill", [](const JsonValue& v, Problem& p) { p.fill = v.text(); }},
    {"lengths", [](const JsonValue& v, Problem& p) { p.lengths = read_lengths(v); }},
    {"heads", [](const JsonValue& v, Problem& p) { p.indexer.index_n_heads = v.integer(1); }},
    {"head_dim", [](const JsonValue& v, Problem& p) { p.indexer.index_head_dim = v.integer(1); }},
    {"kpool", [](const JsonValue& v, Problem& p) { p.indexer.index_kpool = v.integer(1); }},
    {"topk", [](const JsonValue& v, Problem& p) { p.indexer.index_topk = v.integer(1); }},
    {"tail", [](const JsonValue& v,
                Problem& p) { p.indexer.index_kpool_always_select_tail = v.boolean(); }},
    {"page", [](const JsonValue& v, Problem& p) { p.states_per_page = v.integer(1); }},
    {"chunk", [](const JsonValue& v, Problem& p) { p.schedule.prefill_chunk = v.integer(0); }},
    {"prefill", [](const JsonValue& v, Problem& p) { p.schedule.prefill_tokens = v.integer(-1); }},
    {"drafts", [](const JsonValue& v, Problem& p) { p.schedule.drafts = v.integer(0); }},
    {"seed", [](const JsonValue& v, Problem& p) { p.seed = v.unsigned_integer(); }},
};

// An axis that the case names, with its values.
struct NamedAxis {
  const Axis* axis;
  std::vector<JsonValue> values;
};

std::vector<NamedAxis> read_axes(const JsonValue& value) {
  const JsonObject object =
      value.object({}, {"policy", "attention", "mode", "fill", "lengths", "heads", "head_dim",
                        "kpool", "topk", "tail", "page", "chunk", "prefill", "drafts", "seed"});
  std::vector<NamedAxis> named;
  for (const Axis& axis : axes) {
    const std::optional<JsonValue> list = object.find(axis.key);
    if (!list) continue;
    named.push_back({&axis, list->array()});
    if (named.back().values.empty()) list->fail("found an empty list, expected at least one value");
  }
  return named;
}

std::int64_t product_size(const std::vector<NamedAxis>& named) {
  std::int64_t size = 1;
  for (const NamedAxis& axis : named) {
    size =
        checked_product(size, static_cast<std::int64_t>(axis.values.size()), "problems of a case");
  }
  return size;
}

// The values that clash may come from different axes, so the text shows the whole problem.
void validate_in_case(const Problem& problem, const JsonValue& value) {
  try {
    validate(problem, "problem");
  } catch (const ConfigError& error) {
    value.fail(fmt::format("{} (in {})", error.what(), describe(problem)));
  }
}

void append_product(const JsonValue& value, std::vector<Problem>& problems) {
  const std::vector<NamedAxis> named = read_axes(value);
  const std::int64_t size = product_size(named);
  if (checked_sum(size, static_cast<std::int64_t>(problems.size()), "problems") > most_problems) {
    value.fail(fmt::format("found a product of {} problems, expected at most {} in a suite", size,
                           most_problems));
  }
  for (std::int64_t index = 0; index < size; ++index) {
    Problem problem;
    std::int64_t rest = index;
    for (const auto& axis : std::views::reverse(named)) {
      const auto count = static_cast<std::int64_t>(axis.values.size());
      axis.axis->set(axis.values[static_cast<std::size_t>(rest % count)], problem);
      rest /= count;
    }
    validate_in_case(problem, value);
    problems.push_back(std::move(problem));
  }
}

}  // namespace

Suite parse_suite(std::string_view text, std::string_view where) {
  const JsonObject object = parse_json(text, where).object({"name", "why", "cases"});
  Suite suite{object["name"].text(), object["why"].text(), {}};
  const JsonValue cases = object["cases"];
  for (const JsonValue& value : cases.array()) append_product(value, suite.problems);
  if (suite.problems.empty()) cases.fail("found no case, expected at least one");
  return suite;
}

}  // namespace indexpool
