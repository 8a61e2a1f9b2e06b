// What a plugin's operations gave, judged: how the call went, then the values.
#include <algorithm>
#include <cstring>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/foreign/foreign.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/plugin/call.hpp"
#include "indexpool/verify/plugin/plugin.hpp"
#include "indexpool/verify/plugin/trip.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

using plugin::Called;
using plugin::Request;
using plugin::Tensors;
using plugin::Trip;

struct Judge {
  Trip& trip;
  const Options& options;
  std::vector<Record> records;

  Called call(const Request& request) const {
    return plugin::call_plugin(request, {trip.plugin.worker, trip.plugin.limits});
  }
};

// The header's names of outputs, as tensors of foreign outputs.
std::string tensor_name(const std::string& output) {
  if (output == "query_codes") return "q_codes";
  if (output == "query_scales") return "q_scales";
  return output;
}

Tensors tensors_of(const Request& request, const Called& called) {
  Tensors tensors;
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const plugin::Output& output = request.outputs[i];
    const std::vector<std::byte>& bytes = called.outputs[i];
    if (!output.present || (bytes.empty() && output.elements() > 0)) continue;
    Tensor tensor(output.dtype, output.shape);
    if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
    tensors[tensor_name(output.name)] = tensor;
  }
  return tensors;
}

Record start(const Judge& judge, const std::string& op) {
  Record record = start_record(judge.trip.foreign.test_case, judge.options, Op::pool);
  record.op = op;
  record.implementation = judge.trip.plugin.name;
  record.environment.target = "plugin";
  return record;
}

// Records of the values, by the checks of any foreign kernel.
std::vector<Record> judge_values(const Judge& judge, Tensors tensors,
                                 std::vector<std::string> operations,
                                 const std::string& implementation) {
  const Plugin& plugin = judge.trip.plugin;
  ForeignContract contract;
  contract.layout = "split";
  contract.tail = "fixed";
  contract.order = "ascending";
  contract.accumulation = plugin.accumulation;
  contract.deterministic = true;
  contract.operations = std::move(operations);
  contract.implementation = implementation;
  const ForeignOutputs outputs{"plugin " + plugin.path.string(), std::move(tensors)};
  std::vector<Record> records = check_foreign(judge.trip.foreign, outputs, contract, judge.options);
  for (Record& record : records) record.environment.target = "plugin";
  return records;
}

// Puts how the call went before what the values said.
void put_first(const std::vector<Check>& checks, Record& record) {
  const std::int64_t rows = record.verdict.rows, decidable = record.verdict.decidable_rows;
  std::vector<Check> all = checks;
  all.insert(all.end(), record.verdict.checks.begin(), record.verdict.checks.end());
  record.verdict = assemble(std::move(all));
  record.verdict.rows = rows;
  record.verdict.decidable_rows = decidable;
}

// The record of one operation: `fed` are the tensors it got that its values are judged by.
Record judge_operation(const Judge& judge, const std::string& op, const Request& request,
                       const Called& called, Tensors fed) {
  Record record = start(judge, op);
  if (called.ended) {
    record.verdict = *called.ended;
    return record;
  }
  if (!called.judgeable()) {
    record.verdict = assemble(called.checks);
    return record;
  }
  fed.merge(tensors_of(request, called));
  for (Record& judged : judge_values(judge, std::move(fed), {op}, judge.trip.plugin.name)) {
    if (judged.op != op) continue;
    record = std::move(judged);
    put_first(called.checks, record);
    return record;
  }
  record.verdict = assemble(called.checks);
  return record;
}

// The named stored tensors that there are.
Tensors stored(const Trip& trip, std::initializer_list<const char*> names) {
  Tensors tensors;
  for (const char* name : names) {
    const auto found = trip.stored.find(name);
    if (found != trip.stored.end()) tensors[name] = found->second;
  }
  return tensors;
}

// Runs and judges one operation; true when its outputs may be handed on, as they then are.
bool run(Judge& judge, const std::string& op, const Request& request, Tensors fed) {
  const Called called = judge.call(request);
  judge.records.push_back(judge_operation(judge, op, request, called, std::move(fed)));
  if (!usable(judge.records.back().verdict)) return false;
  for (auto& [name, tensor] : tensors_of(request, called)) judge.trip.stored[name] = tensor;
  return true;
}

void judge_pool(Judge& judge) {
  const bool offered = judge.trip.plugin.offers("pool");
  if (!offered || !run(judge, "pool", pool_request(judge.trip), {})) {
    store_reference_pools(judge.trip);
  }
}

void judge_quantize_query(Judge& judge) {
  const bool offered = judge.trip.plugin.offers("quantize_query") && judge.trip.quantised();
  if (!offered || !run(judge, "quantize_query", quantize_query_request(judge.trip), {})) {
    store_reference_queries(judge.trip);
  }
}

void judge_logits(Judge& judge) {
  Trip& trip = judge.trip;
  const Tensors fed = stored(trip, {"pool_codes", "pool_scales", "q_codes", "q_scales"});
  if (!trip.plugin.offers("logits") || !run(judge, "logits", logits_request(trip), fed)) {
    store_reference_logits(trip);
  } else {
    plugin::hide_invisible(trip.inputs(), trip.stride, trip.stored.at("logits").as<float>());
  }
}

// The same operation on logits made to be difficult: NaN, infinities, signed zeros, ties.
void judge_difficult(Judge& judge, Record& record) {
  Trip& trip = judge.trip;
  std::vector<float> logits = adversarial_logits(trip.inputs(), trip.stride, judge.options.seed);
  plugin::hide_invisible(trip.inputs(), trip.stride, logits);
  const Called called = judge.call(topk_request(trip, bytes_of(logits)));
  std::vector<Check> checks = called.checks;
  if (called.ended) {
    checks.push_back({"process", called.ended->status, called.ended->reason, 0, 1, 1});
  } else if (called.judgeable()) {
    std::vector<std::int32_t> selection(called.outputs[0].size() / sizeof(std::int32_t));
    std::memcpy(selection.data(), called.outputs[0].data(), called.outputs[0].size());
    checks.push_back(check_tie_rule(trip.inputs(), logits, trip.stride, selection));
  }
  for (Check& check : checks) {
    if (!check.reason.empty()) check.reason = "difficult logits: " + check.reason;
    const auto same = std::ranges::find(record.verdict.checks, check.name, &Check::name);
    if (same == record.verdict.checks.end()) {
      record.verdict.checks.push_back(check);
    } else {
      *same = merge(*same, check);
    }
  }
  put_first({}, record);
}

void judge_topk(Judge& judge) {
  Trip& trip = judge.trip;
  if (!trip.plugin.offers("topk")) return;
  const Tensors fed = stored(trip, {"pool_codes", "pool_scales", "q_codes", "q_scales", "logits"});
  const Request request = topk_request(trip, trip.stored.at("logits").raw());
  run(judge, "topk", request, fed);
  // One crash is told once.
  Record& record = judge.records.back();
  if (record.verdict.status != Status::error && record.verdict.status != Status::unsupported) {
    judge_difficult(judge, record);
  }
}

void judge_pipeline(Judge& judge) {
  if (!judge.trip.plugin.offers("pipeline")) return;
  const Request request = pipeline_request(judge.trip);
  const Called called = judge.call(request);
  Record record = start(judge, "pipeline");
  record.verdict = called.ended ? *called.ended : assemble(called.checks);
  judge.records.push_back(record);
  if (!called.judgeable()) return;
  // The same operations may be offered one by one as well: their records need another name.
  const std::string name = judge.trip.plugin.name + ", pipeline";
  for (Record& of_op : judge_values(judge, tensors_of(request, called), {}, name)) {
    judge.records.push_back(std::move(of_op));
  }
}

}  // namespace

std::vector<Record> check_plugin(const Plugin& plugin, const Case& test_case,
                                 const Options& options, bool about_ties) {
  if (plugin.refusal) return {refusal_record(plugin, options)};
  Options at_once = options;
  at_once.schedule = {};  // operations get the whole case
  const ForeignCase foreign = prepare_foreign(test_case, at_once, about_ties);
  Trip trip = plugin::start_trip(plugin, foreign, options.seed);
  Judge judge{trip, options, {}};
  const auto progress = [&](const char* what) {
    if (options.progress) options.progress(test_case.name + ": " + what);
  };
  progress("pool");
  judge_pool(judge);
  progress("quantize_query");
  judge_quantize_query(judge);
  progress("logits");
  judge_logits(judge);
  progress("topk");
  judge_topk(judge);
  progress("pipeline");
  judge_pipeline(judge);
  return std::move(judge.records);
}

std::vector<Record> check_plugin_problem(const Plugin& plugin, const Problem& problem,
                                         const Options& options) {
  Options own = options;
  own.states_per_page = problem.states_per_page;
  own.seed = problem.seed;
  std::vector<Record> records =
      check_plugin(plugin, make_case(problem), own, find_fill(problem.fill).about_ties);
  if (plugin.refusal) return records;
  for (Record& record : records) record.problem = problem;
  return records;
}

}  // namespace indexpool::verify
