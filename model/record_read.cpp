// Records from JSON: every key known, required ones present, each value of its type.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

double read_number(const JsonValue& value) {
  if (!value.is_text()) return value.number();
  const std::string text = value.text();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  value.fail(
      fmt::format(R"(found the text "{}", expected a number, "nan", "inf" or "-inf")", text));
}

double read_utilisation(const JsonValue& value) {
  const double utilisation = read_number(value);
  if (!(utilisation >= 0)) {
    value.fail(fmt::format("found {}, expected an error over its bound: 0 or more", utilisation));
  }
  return utilisation;
}

Seconds read_seconds(const JsonValue& value) { return Seconds(read_number(value)); }

Bytes read_bytes(const JsonValue& value) { return Bytes(value.integer(0)); }

Status read_status(const JsonValue& value) {
  const std::string name = value.text();
  const std::optional<Status> status = status_from_name(name);
  if (!status) {
    value.fail(
        fmt::format("found \"{}\", expected passed, marginal, failed, untrusted, skipped, "
                    "unsupported or error",
                    name));
  }
  return *status;
}

Problem read_problem(const JsonValue& value) {
  const JsonObject object =
      value.object({"mode", "heads", "head_dim", "topk", "kpool", "tail", "lengths", "prefill",
                    "chunk", "drafts", "page", "fill", "seed"},
                   {"policy", "attention"});
  Problem problem;
  if (const auto policy = object.find("policy")) problem.policy = policy->text();
  if (const auto attention = object.find("attention")) problem.attention = attention->text();
  problem.mode = object["mode"].text();
  problem.indexer.index_n_heads = object["heads"].integer();
  problem.indexer.index_head_dim = object["head_dim"].integer();
  problem.indexer.index_topk = object["topk"].integer();
  problem.indexer.index_kpool = object["kpool"].integer();
  problem.indexer.index_kpool_always_select_tail = object["tail"].boolean();
  problem.lengths.clear();
  for (const JsonValue& length : object["lengths"].array()) {
    problem.lengths.push_back(length.integer());
  }
  problem.schedule.prefill_tokens = object["prefill"].integer();
  problem.schedule.prefill_chunk = object["chunk"].integer();
  problem.schedule.drafts = object["drafts"].integer();
  problem.states_per_page = object["page"].integer();
  problem.fill = object["fill"].text();
  problem.seed = object["seed"].unsigned_integer();
  return problem;
}

Environment read_environment(const JsonValue& value) {
  const JsonObject object =
      value.object({"target", "device", "driver", "toolkit", "compiler", "clocks", "version"});
  return {object["target"].text(),  object["device"].text(),   object["driver"].text(),
          object["toolkit"].text(), object["compiler"].text(), object["clocks"].text(),
          object["version"].text()};
}

Check read_check(const JsonValue& value) {
  const JsonObject object =
      value.object({"name", "status", "reason", "utilisation", "compared", "violations"});
  Check check;
  check.name = object["name"].text();
  check.status = read_status(object["status"]);
  check.reason = object["reason"].text();
  check.utilisation = read_utilisation(object["utilisation"]);
  check.compared = object["compared"].integer(0);
  check.violations = object["violations"].integer(0);
  return check;
}

Verdict read_verdict(const JsonValue& value) {
  const JsonObject object =
      value.object({"status", "reason", "checks", "worst_utilisation", "rows", "decidable_rows"});
  Verdict verdict;
  verdict.status = read_status(object["status"]);
  verdict.reason = object["reason"].text();
  for (const JsonValue& check : object["checks"].array()) {
    verdict.checks.push_back(read_check(check));
  }
  verdict.worst_utilisation = read_utilisation(object["worst_utilisation"]);
  verdict.rows = object["rows"].integer(0);
  verdict.decidable_rows = object["decidable_rows"].integer(0);
  return verdict;
}

Measurement read_measurement(const JsonValue& value) {
  const JsonObject object =
      value.object({"median_s", "p10_s", "p90_s", "samples", "cache", "clock"});
  return {read_seconds(object["median_s"]), read_seconds(object["p10_s"]),
          read_seconds(object["p90_s"]),    object["samples"].integer(0),
          object["cache"].text(),           object["clock"].text()};
}

CostTerm read_term(const JsonValue& value) {
  const JsonObject object =
      value.object({"name", "time_s", "low_s", "high_s", "formula", "source"});
  return {object["name"].text(),         read_seconds(object["time_s"]),
          read_seconds(object["low_s"]), read_seconds(object["high_s"]),
          object["formula"].text(),      object["source"].text()};
}

Prediction read_prediction(const JsonValue& value) {
  const JsonObject object = value.object(
      {"device", "time_s", "low_s", "high_s", "bound_by", "hbm_bytes", "memory_bytes", "terms"});
  Prediction prediction;
  prediction.device = object["device"].text();
  prediction.time = read_seconds(object["time_s"]);
  prediction.low = read_seconds(object["low_s"]);
  prediction.high = read_seconds(object["high_s"]);
  prediction.bound_by = object["bound_by"].text();
  prediction.hbm_bytes = read_bytes(object["hbm_bytes"]);
  prediction.memory = read_bytes(object["memory_bytes"]);
  for (const JsonValue& term : object["terms"].array()) prediction.terms.push_back(read_term(term));
  return prediction;
}

Traffic read_traffic(const JsonValue& value) {
  const JsonObject object =
      value.object({"global_load_bytes", "global_store_bytes", "load_sectors", "store_sectors",
                    "shared_load_bytes", "shared_store_bytes", "shared_wavefronts", "matrix_ops",
                    "block_barriers", "shuffles"});
  Traffic traffic;
  traffic.global_load = read_bytes(object["global_load_bytes"]);
  traffic.global_store = read_bytes(object["global_store_bytes"]);
  traffic.load_sectors = object["load_sectors"].integer(0);
  traffic.store_sectors = object["store_sectors"].integer(0);
  traffic.shared_load = read_bytes(object["shared_load_bytes"]);
  traffic.shared_store = read_bytes(object["shared_store_bytes"]);
  traffic.shared_wavefronts = object["shared_wavefronts"].integer(0);
  traffic.matrix_ops = object["matrix_ops"].integer(0);
  traffic.block_barriers = object["block_barriers"].integer(0);
  traffic.shuffles = object["shuffles"].integer(0);
  return traffic;
}

// The schema comes first: a record of another one has other keys, and saying which of them is
// unknown would hide the reason.
void check_schema(const JsonValue& root) {
  if (!root.is_object()) return;
  for (const auto& [key, value] : root.members()) {
    if (key != "schema") continue;
    if (const std::int64_t schema = value.integer(); schema != record_schema) {
      value.fail(
          fmt::format("found schema {}, expected {}; these records are from another version, "
                      "write them again with this one",
                      schema, record_schema));
    }
  }
}

template <class T>
std::optional<T> read_optional(const JsonObject& object, std::string_view key,
                               T (*read)(const JsonValue&)) {
  const std::optional<JsonValue> value = object.find(key);
  return value ? std::optional<T>(read(*value)) : std::nullopt;
}

}  // namespace

Record record_from_json(std::string_view line, std::string_view where) {
  const JsonValue root = parse_json(line, where);
  check_schema(root);
  const JsonObject object =
      root.object({"schema", "case_name", "op", "implementation", "reference", "environment",
                   "verdict", "values", "seed", "repeat"},
                  {"problem", "measurement", "prediction", "declared", "counted"});
  Record record;
  record.case_name = object["case_name"].text();
  record.op = object["op"].text();
  record.implementation = object["implementation"].text();
  record.reference = object["reference"].text();
  record.problem = read_optional(object, "problem", read_problem);
  record.environment = read_environment(object["environment"]);
  record.verdict = read_verdict(object["verdict"]);
  record.measurement = read_optional(object, "measurement", read_measurement);
  record.prediction = read_optional(object, "prediction", read_prediction);
  record.declared = read_optional(object, "declared", read_traffic);
  record.counted = read_optional(object, "counted", read_traffic);
  for (const auto& [name, value] : object["values"].members()) {
    record.values[name] = read_number(value);
  }
  record.seed = object["seed"].unsigned_integer();
  record.repeat = object["repeat"].text();
  return record;
}

}  // namespace indexpool
