#include "sample.hpp"

#include <algorithm>

namespace indexpool::reports {
namespace {

Prediction prediction_of(double micros, std::int64_t bytes, const char* bound_by) {
  Prediction prediction;
  prediction.device = "a100-sxm4-80gb";
  prediction.time = Seconds(micros * 1e-6);
  prediction.low = Seconds(micros * 0.85e-6);
  prediction.high = Seconds(micros * 1.3e-6);
  prediction.bound_by = bound_by;
  prediction.hbm_bytes = Bytes(bytes);
  prediction.memory = Bytes(bytes);
  prediction.terms = {{"hbm", Seconds(micros * 0.8e-6), Seconds(micros * 0.7e-6),
                       Seconds(micros * 0.9e-6), "34.6 MB / 1776 GB/s", "measured read stream"}};
  return prediction;
}

Record record_of(const char* op, const char* kernel, std::vector<Check> checks) {
  Record record;
  record.case_name = "fp8_glm53";
  record.op = op;
  record.implementation = kernel;
  record.reference = "binary64, vllm_fp8";
  record.environment = {"simt", "CPU executor", "", "", "g++ 12.2.0", "", "0.1.0"};
  record.verdict.status = Status::passed;
  for (const Check& check : checks) {
    record.verdict.status = worst(record.verdict.status, check.status);
    record.verdict.worst_utilisation =
        std::max(record.verdict.worst_utilisation, check.utilisation);
    if (record.verdict.reason.empty()) record.verdict.reason = check.reason;
  }
  record.verdict.checks = std::move(checks);
  record.counted = Traffic{};
  record.counted->global_load = Bytes(132'608);
  record.counted->global_store = Bytes(8'448);
  record.declared = record.counted;
  record.seed = 22;
  record.repeat = "indexpool verify --case fp8_glm53.safetensors";
  return record;
}

void predict(Record& record, double micros, std::int64_t bytes, const char* bound_by, double load,
             double store) {
  record.prediction = prediction_of(micros, bytes, bound_by);
  record.values = {{"predicted_tokens", 1 << 20},
                   {"indexer_layers", 11},
                   {"predicted_load_bytes", load},
                   {"predicted_store_bytes", store}};
}

Check check(const char* name, double utilisation, std::int64_t compared) {
  return {name, Status::passed, "", utilisation, compared, 0};
}

}  // namespace

std::vector<Record> passed_records() {
  std::vector<Record> records = {
      record_of("pool", "pool",
                {check("bound", 0.21, 8192), check("quantiser", 0, 8192), check("scale", 0, 64),
                 check("weight_sum", 0.06, 8192), check("checksum", 0.02, 64),
                 check("rerun", 0, 8448), check("guards", 0, 1), check("lane_order", 0, 8448),
                 check("traffic", 0, 2), check("golden", 0, 8448)}),
      record_of("append", "append",
                {check("quantiser", 0, 8192), check("scale", 0, 64), check("rerun", 0, 8448)}),
      record_of("quantize_query", "quantize_query",
                {check("quantiser", 0, 1'060'864), check("scale", 0, 8288)}),
      record_of("logits", "logits_mma",
                {check("bound", 0.0043, 8385), check("golden", 0.31, 8385)}),
      record_of("topk", "topk", {check("selection", 0, 259), check("golden", 0, 33'929)})};
  records[4].verdict.rows = 259;
  records[4].verdict.decidable_rows = 257;
  predict(records[0], 331, 571'000'000, "hbm", 537e6, 34.6e6);
  predict(records[1], 2.9, 2'700, "launch", 2560, 132);
  predict(records[2], 2.8, 16'640, "launch", 8192, 4224);
  predict(records[3], 22.4, 35'700'000, "hbm", 34.6e6, 1.05e6);
  predict(records[4], 6.1, 1'050'000, "launch", 1.05e6, 8204);
  return records;
}

std::vector<Record> mixed_records() {
  std::vector<Record> records = passed_records();
  Check wrong{"bound", Status::failed, "row 12, channel 7: got 1.5, expected 1.25 to 1.2500001",
              3.4,     8192,           5};
  records.push_back(record_of("pool", "pool", {wrong, check("rerun", 0, 8448)}));
  Check vacuous{
      "selection", Status::untrusted, "no row is decidable: all scores are equal", 0, 40, 0};
  records.push_back(record_of("topk", "topk", {vacuous}));
  records.back().verdict.rows = 40;
  Record broken = record_of("logits", "logits_mma", {});
  broken.verdict = {
      Status::error, "divergent barrier at logits.cuh:88, block 3, thread 17", {}, 0, 0, 0};
  records.push_back(broken);
  Check close{"bound", Status::marginal, "0.94 of the bound at row 3, pool 2", 0.94, 8385, 0};
  records.push_back(record_of("logits", "logits_mma", {close}));
  Record skipped = record_of("logits", "logits_e4m3", {});
  skipped.verdict = {Status::skipped, "no CUDA device", {}, 0, 0, 0};
  records.push_back(skipped);
  Record unsupported = record_of("pool", "pool", {});
  unsupported.verdict = {Status::unsupported, "head_dim 96 is not a multiple of 32", {}, 0, 0, 0};
  records.push_back(unsupported);
  for (std::size_t i = 5; i < records.size(); ++i) records[i].case_name = "ties_f32";
  return records;
}

std::vector<Record> hostile_records() {
  const std::string bad =
      "<script>alert('1')</script> & \"quoted\" | `code` ]]> --> \\ \x01\x1b[31m \xff\xc0\xaf\n# x";
  Record record = record_of("pool", "pool", {check("bound", 0.5, 1)});
  record.case_name = record.op = record.implementation = record.reference = record.repeat = bad;
  record.environment = {bad, bad, bad, bad, bad, bad, bad};
  record.verdict.status = Status::failed;
  record.verdict.reason = bad;
  record.verdict.checks[0].name = record.verdict.checks[0].reason = bad;
  record.verdict.checks[0].status = Status::failed;
  predict(record, 1, 1, "hbm", 1, 1);
  record.prediction->device = record.prediction->bound_by = bad;
  return {record};
}

std::vector<Curve> sample_curves() {
  Curve pooled{"pooled, kpool 4", "memory", "bytes", {}, {}, {}, {}};
  Curve unpooled{"one key per token", "memory", "bytes", {}, {}, {}, {}};
  Curve paged{"pooled, whole pages", "memory", "bytes", {}, {}, {}, {}};
  Curve logits{"logits", "time", "seconds", {}, {}, {}, {}};
  Curve topk{"topk", "time", "seconds", {}, {}, {}, {}};
  Curve append{"append", "time", "seconds", {}, {}, {}, {}};
  for (double tokens = 4096; tokens < 2e7; tokens *= 2) {
    const double at = std::min(tokens, 10.0 * (1 << 20));
    const auto add = [at](Curve& curve, double value, double spread) {
      curve.tokens.push_back(at);
      curve.value.push_back(value);
      curve.low.push_back(value / (1 + spread));
      curve.high.push_back(value * (1 + spread));
    };
    add(pooled, at / 4 * 132 * 11, 0);
    add(paged, at / 4 * 132 * 11 + 8448.0 * 11, 0);
    add(unpooled, at * 132 * 11, 0);
    add(logits, 11 * (3e-6 + at / 4 * 132 / 1.77e12), 0.2);
    add(topk, 11 * (4e-6 + at * 2 / 1.77e12), 0.4);
    add(append, 11 * 3e-6, 0.3);
    if (at < tokens) break;
  }
  return {pooled, paged, unpooled, append, logits, topk};
}

ReportInput sample_input(std::vector<Record> records) {
  return {"GLM-5.3-Flash indexer, side by side", std::move(records), sample_curves(),
          "indexpool run"};
}

}  // namespace indexpool::reports
