#include "indexpool/reports/cli/forecast_record.hpp"

#include <algorithm>

#include "indexpool/reports/html_sections.hpp"

namespace indexpool::cli {
namespace {

constexpr double sector_bytes = 32;  // of a global access, CUDA C++ Programming Guide
constexpr double pass_bytes = 128;   // 32 banks of 4 bytes, CUDA C++ Programming Guide

}  // namespace

void store_forecast(const OperationForecast& forecast, std::int64_t tokens,
                    const ArchitectureConfig& model, Record& record) {
  const Work& work = forecast.work;
  const Traffic& traffic = work.traffic;
  record.prediction = forecast.prediction;
  auto& values = record.values;
  values["predicted_tokens"] = static_cast<double>(tokens);
  values["predicted_load_bytes"] = static_cast<double>(work.unique_read.value);
  values["predicted_store_bytes"] = static_cast<double>(work.unique_write.value);
  values["predicted_l2_bytes"] =
      sector_bytes * static_cast<double>(traffic.load_sectors + traffic.store_sectors);
  values["predicted_shared_bytes"] =
      pass_bytes * static_cast<double>(traffic.shared_wavefronts + traffic.shuffles);
  values["predicted_matrix_flop"] = work.matrix_flop.value;
  values["predicted_f32_flop"] = work.f32_flop.value;
  values["predicted_warp_instructions"] = work.instructions.issued;
  values["indexer_layers"] = static_cast<double>(model.indexer_layers);
}

Record* add_forecast(const OperationForecast& forecast, std::int64_t tokens,
                     std::vector<Record>& records) {
  const auto found = std::ranges::find(records, forecast.op, &Record::op);
  if (found == records.end() || !forecast.refusal.empty()) return nullptr;
  OperationForecast all = forecast;
  if (found->prediction) {
    all.prediction.time += found->prediction->time;
    all.prediction.low += found->prediction->low;
    all.prediction.high += found->prediction->high;
    all.prediction.hbm_bytes += found->prediction->hbm_bytes;
  }
  store_forecast(all, tokens, {}, *found);
  return &*found;
}

Record predicted_record(const OperationForecast& forecast, std::int64_t tokens,
                        const ArchitectureConfig& model) {
  Record record;
  record.case_name = model.name;
  record.op = forecast.op;
  record.implementation = forecast.kernel;
  record.environment.target = "cost model";
  record.verdict.reason = "predicted only: the case does not need this kernel";
  record.repeat = "indexpool predict --model " + model.name;
  store_forecast(forecast, tokens, model, record);
  return record;
}

std::vector<std::string> cost_pictures(const ArchitectureConfig& model, const DeviceSpec& device,
                                       std::int64_t tokens) {
  if (model.indexer_layers == 0) return {};
  reports::ReportInput input;
  input.device = device;
  std::vector<OperationForecast> step = decode_step(model, device, tokens);
  step.push_back(pool_prompt(model, device, tokens));
  for (const OperationForecast& forecast : step) {
    if (!forecast.refusal.empty()) continue;
    input.records.push_back(predicted_record(forecast, tokens, model));
  }
  return {reports::roofline_section(input), reports::hierarchy_section(input)};
}

}  // namespace indexpool::cli
