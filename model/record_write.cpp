// Records to JSON. A key's name carries the unit; a number JSON has no spelling for is one of the
// texts "nan", "inf", "-inf".
#include <cmath>

#include <nlohmann/json.hpp>

#include "indexpool/model/record.hpp"

namespace indexpool {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json json_of(const Problem& problem) {
  const IndexerConfig& indexer = problem.indexer;
  Json json = {{"mode", problem.mode},
               {"heads", indexer.index_n_heads},
               {"head_dim", indexer.index_head_dim},
               {"topk", indexer.index_topk},
               {"kpool", indexer.index_kpool},
               {"tail", indexer.index_kpool_always_select_tail},
               {"lengths", problem.lengths},
               {"prefill", problem.schedule.prefill_tokens},
               {"chunk", problem.schedule.prefill_chunk},
               {"drafts", problem.schedule.drafts},
               {"page", problem.states_per_page},
               {"fill", problem.fill},
               {"seed", problem.seed}};
  if (problem.policy != shipped_policy) json["policy"] = problem.policy;
  if (!problem.attention.empty()) json["attention"] = problem.attention;
  return json;
}

Json json_of(const Environment& environment) {
  return {{"target", environment.target},     {"device", environment.device},
          {"driver", environment.driver},     {"toolkit", environment.toolkit},
          {"compiler", environment.compiler}, {"clocks", environment.clocks},
          {"version", environment.version}};
}

Json json_of(const Check& check) {
  return {{"name", check.name},         {"status", to_string(check.status)},
          {"reason", check.reason},     {"utilisation", number(check.utilisation)},
          {"compared", check.compared}, {"violations", check.violations}};
}

Json json_of(const Verdict& verdict) {
  Json checks = Json::array();
  for (const Check& check : verdict.checks) checks.push_back(json_of(check));
  return {{"status", to_string(verdict.status)},
          {"reason", verdict.reason},
          {"checks", std::move(checks)},
          {"worst_utilisation", number(verdict.worst_utilisation)},
          {"rows", verdict.rows},
          {"decidable_rows", verdict.decidable_rows}};
}

Json json_of(const Measurement& measurement) {
  return {{"median_s", number(measurement.median.value)},
          {"p10_s", number(measurement.p10.value)},
          {"p90_s", number(measurement.p90.value)},
          {"samples", measurement.samples},
          {"cache", measurement.cache},
          {"clock", measurement.clock}};
}

Json json_of(const CostTerm& term) {
  return {{"name", term.name},
          {"time_s", number(term.time.value)},
          {"low_s", number(term.low.value)},
          {"high_s", number(term.high.value)},
          {"formula", term.formula},
          {"source", term.source}};
}

Json json_of(const Prediction& prediction) {
  Json terms = Json::array();
  for (const CostTerm& term : prediction.terms) terms.push_back(json_of(term));
  return {{"device", prediction.device},
          {"time_s", number(prediction.time.value)},
          {"low_s", number(prediction.low.value)},
          {"high_s", number(prediction.high.value)},
          {"bound_by", prediction.bound_by},
          {"hbm_bytes", prediction.hbm_bytes.value},
          {"memory_bytes", prediction.memory.value},
          {"terms", std::move(terms)}};
}

Json json_of(const Traffic& traffic) {
  return {{"global_load_bytes", traffic.global_load.value},
          {"global_store_bytes", traffic.global_store.value},
          {"load_sectors", traffic.load_sectors},
          {"store_sectors", traffic.store_sectors},
          {"shared_load_bytes", traffic.shared_load.value},
          {"shared_store_bytes", traffic.shared_store.value},
          {"shared_wavefronts", traffic.shared_wavefronts},
          {"matrix_ops", traffic.matrix_ops},
          {"block_barriers", traffic.block_barriers},
          {"shuffles", traffic.shuffles}};
}

}  // namespace

std::string to_json_line(const Record& record) {
  Json json = {{"schema", record.schema},
               {"case_name", record.case_name},
               {"op", record.op},
               {"implementation", record.implementation},
               {"reference", record.reference}};
  if (record.problem) json["problem"] = json_of(*record.problem);
  json["environment"] = json_of(record.environment);
  json["verdict"] = json_of(record.verdict);
  if (record.measurement) json["measurement"] = json_of(*record.measurement);
  if (record.prediction) json["prediction"] = json_of(*record.prediction);
  if (record.declared) json["declared"] = json_of(*record.declared);
  if (record.counted) json["counted"] = json_of(*record.counted);
  json["values"] = Json::object();
  for (const auto& [name, value] : record.values) json["values"][name] = number(value);
  json["seed"] = record.seed;
  json["repeat"] = record.repeat;
  // A text from elsewhere (a compiler, a device) that is not UTF-8 must not cost the whole record.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace indexpool
