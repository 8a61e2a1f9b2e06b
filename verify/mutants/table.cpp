// Reads the embedded table.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/verify/mutants/mutant.hpp"

namespace indexpool {
std::span<const DataFile> embedded_mutants();          // table/*.json
std::span<const DataFile> embedded_mutant_problems();  // problems/*.json
}  // namespace indexpool

namespace indexpool::verify {
namespace {

template <class Names>
std::string known_name(const JsonValue& value, std::string_view what, const Names& known) {
  std::string name = value.text();
  if (std::ranges::find(known, name) != std::ranges::end(known)) return name;
  const std::vector<std::string> all(std::ranges::begin(known), std::ranges::end(known));
  value.fail(fmt::format("unknown {} \"{}\"{}; known are {}", what, name, did_you_mean(name, all),
                         fmt::join(all, ", ")));
}

std::string identifier(const JsonValue& value) {
  std::string text = value.text();
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (text.empty() || text[0] < 'a' || text[0] > 'z' || !std::ranges::all_of(text, fits))
    value.fail(fmt::format("\"{}\" is no identifier of a-z, 0-9 and _", text));
  return text;
}

std::string optional_text(const JsonObject& row, std::string_view key) {
  const auto value = row.find(key);
  return value ? value->text() : "";
}

std::vector<std::string_view> class_names() {
  std::vector<std::string_view> names;
  for (const MutantClass& known : mutant_classes()) names.push_back(known.name);
  return names;
}

Mutant read_row(const JsonValue& value) {
  const JsonObject row = value.object(
      {"id", "class", "kernel", "file", "find", "with", "problems", "killed_by", "why"},
      {"far", "tight_ring", "race_at", "equivalent"});
  Mutant mutant;
  mutant.id = identifier(row["id"]);
  mutant.fault = known_name(row["class"], "class", class_names());
  mutant.kernel = row["kernel"].text();
  mutant.file = row["file"].text();
  mutant.find = row["find"].text();
  mutant.with = row["with"].text();
  mutant.problems = known_name(row["problems"], "set of problems", mutant_problem_names());
  mutant.killed_by = known_name(row["killed_by"], "check", killing_checks());
  mutant.why = row["why"].text();
  if (const auto far = row.find("far")) mutant.far = far->boolean();
  if (const auto tight = row.find("tight_ring")) mutant.tight_ring = tight->boolean();
  mutant.race_at = optional_text(row, "race_at");
  mutant.equivalent = optional_text(row, "equivalent");
  if (mutant.find.empty() || mutant.find == mutant.with)
    row["find"].fail("it must be some text, and \"with\" another");
  return mutant;
}

}  // namespace

std::span<const MutantClass> mutant_classes() {
  static constexpr MutantClass classes[] = {
      {"arithmetic", "a formula"},
      {"rounding", "a rounding too many, too few or another"},
      {"scale", "the scale of a quantised vector", true},
      {"quantiser", "codes"},
      {"checksum", "what guards stored pools"},
      {"index", "which element is read or written", true},
      {"tail", "the rest of a tile, a grid, a sequence", true},
      {"causality", "who sees which pool", true},
      {"tie_rule", "which of equal logits"},
      {"selection", "which pools"},
      {"nan", "numbers that are none"},
      {"ring", "the tail ring"},
      {"page", "pages, slots, block tables", true},
      {"chunk_seam", "pools that span two chunks"},
      {"speculation", "drafts and their rejection"},
      {"overflow", "offsets in 32 bits", true},
      {"barrier", "a barrier missing or misplaced", true},
      {"async_copy", "a copy not waited for", true},
      {"warp_sync", "masks and votes of a warp", true},
      {"stale", "memory not written, or written before", true},
      {"grid", "how many blocks"},
      {"traffic", "right results for more bytes than declared"}};
  return classes;
}

std::span<const std::string_view> killing_checks() {
  static constexpr std::string_view checks[] = {"bound",
                                                "scale",
                                                "quantiser",
                                                "weight_sum",
                                                "checksum",
                                                "schedule",
                                                "tail",
                                                "untouched",
                                                "selection",
                                                "structure",
                                                "tie_rule",
                                                "lane_order",
                                                "rerun",
                                                "guards",
                                                "traffic",
                                                "executor",
                                                "state",
                                                "counts",
                                                "saturation",
                                                "even_attention",
                                                "clip",
                                                "bound_held_vectors",
                                                "bound_slot_weights",
                                                "bound_pool_weights",
                                                "bound_pool_matrix",
                                                "bound_norm_rows",
                                                "bound_norm_weight",
                                                "bound_gate_scores",
                                                "bound_position_bias",
                                                "bound_vectors",
                                                "bound_hidden_states",
                                                "bound_gate_hidden",
                                                "bound_gate_bias",
                                                "bound_queries",
                                                "bound_cosines",
                                                "bound_term_rows",
                                                "bound_terms",
                                                "bound_position_rows",
                                                "bound_position_terms"};
  return checks;
}

std::vector<Mutant> parse_mutants(std::string_view text, std::string_view where) {
  std::vector<Mutant> mutants;
  for (const JsonValue& row : parse_json(text, where).object({"mutants"})["mutants"].array())
    mutants.push_back(read_row(row));
  return mutants;
}

std::vector<Mutant> mutant_table() {
  std::vector<Mutant> table;
  std::set<std::string> ids;
  for (const DataFile& file : embedded_mutants()) {
    for (Mutant& mutant : parse_mutants(file.text, file.name)) {
      if (!ids.insert(mutant.id).second)
        throw ConfigError(
            fmt::format("{}: the mutant \"{}\" is there twice", file.name, mutant.id));
      table.push_back(std::move(mutant));
    }
  }
  return table;
}

const Mutant& find_mutant(std::span<const Mutant> table, std::string_view id) {
  const auto found =
      std::ranges::find_if(table, [&](const Mutant& mutant) { return mutant.id == id; });
  if (found != table.end()) return *found;
  std::vector<std::string> ids;
  for (const Mutant& mutant : table) ids.push_back(mutant.id);
  throw ConfigError(fmt::format("there is no mutant '{}'{}", id, did_you_mean(id, ids)));
}

std::vector<std::string> mutant_problem_names() {
  std::vector<std::string> names;
  for (const DataFile& file : embedded_mutant_problems()) names.emplace_back(file.name);
  return names;
}

Suite mutant_problems(std::string_view name) {
  for (const DataFile& file : embedded_mutant_problems())
    if (file.name == name) return parse_suite(file.text, file.name);
  throw ConfigError(fmt::format("there are no mutants' problems '{}'{}", name,
                                did_you_mean(name, mutant_problem_names())));
}

}  // namespace indexpool::verify
