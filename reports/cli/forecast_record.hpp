// Forecasts as records, which is what reports draw from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/forecast.hpp"

namespace indexpool::cli {

// Prediction, context and work of `forecast` into `record`, under the names of report.hpp.
void store_forecast(const OperationForecast& forecast, std::int64_t tokens,
                    const ArchitectureConfig& model, Record& record);
// Onto the record of its operation: several launches of one add up. The record; null without one,
// or when no kernel takes the launch.
Record* add_forecast(const OperationForecast& forecast, std::int64_t tokens,
                     std::vector<Record>& records);
// A record that says nothing but what is predicted.
Record predicted_record(const OperationForecast& forecast, std::int64_t tokens,
                        const ArchitectureConfig& model);

// Sections of a page: the kernels of a decode step at `tokens`, and pool over the whole prompt, on
// the roofline; the decode step's way through the memory hierarchy. None without an indexer.
std::vector<std::string> cost_pictures(const ArchitectureConfig& model, const DeviceSpec& device,
                                       std::int64_t tokens);

}  // namespace indexpool::cli
