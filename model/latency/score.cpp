#include "indexpool/model/latency/score.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/cross_validation.hpp"
#include "indexpool/model/latency/held_out.hpp"
#include "indexpool/model/latency/spread.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t least_rows = 6;  // to fit a kernel's constants on

bool same_split(const ImplementationSet& set, const TimingTable& table, const DeviceSpec& device,
                const ScoreOptions& options) {
  return set.table == table.adapter && set.device == device.name && set.seed == options.seed &&
         set.held_out_share == options.held_out_share;
}

std::vector<std::string> kernels_of(const TimingTable& table) {
  std::vector<std::string> names;
  for (const TimedRow& row : table.rows) {
    if (std::find(names.begin(), names.end(), row.kernel) == names.end()) {
      names.push_back(row.kernel);
    }
  }
  return names;
}

std::vector<const TimedRow*> fit_rows(const TimingTable& table, const std::string& kernel,
                                      const ScoreOptions& options) {
  std::vector<const TimedRow*> rows;
  for (const TimedRow& row : table.rows) {
    if (row.kernel == kernel && !held_out(row.family, options.seed, options.held_out_share)) {
      rows.push_back(&row);
    }
  }
  return rows;
}

Implementation fitted(const TimingTable& table, const std::string& kernel, const DeviceSpec& device,
                      const ScoreOptions& options) {
  const std::vector<const TimedRow*> rows = fit_rows(table, kernel, options);
  if (static_cast<std::int64_t>(rows.size()) < least_rows) {
    throw ConfigError(fmt::format(
        "{}: {} rows of \"{}\" are left to fit on, expected at least {}; hold out a smaller share",
        table.file, rows.size(), kernel, least_rows));
  }
  const KernelForm& form = kernel_form(rows.front()->form);
  const auto advance = [&] {
    if (options.advance) options.advance(kernel);
  };
  const Fit fit = fit_constants(form, device, rows, advance);
  Implementation out{kernel, std::string(form.name), fit.constants, fit.rows, {}};
  out.spread = spreads(cross_validated(form, device, rows, options.seed, advance));
  return out;
}

ImplementationSet fit_table(const TimingTable& table, const DeviceSpec& device,
                            const ScoreOptions& options) {
  ImplementationSet set;
  set.name = fmt::format("{}.{}", table.adapter, device.name);
  set.table = table.adapter;
  set.device = device.name;
  set.source = fmt::format("rows of {}{}{}", table.file.substr(table.file.find_last_of('/') + 1),
                           table.measured_on.empty() ? "" : ", measured on ", table.measured_on);
  set.held_out_share = options.held_out_share;
  set.seed = options.seed;
  std::int64_t rows = 0;
  for (const std::string& kernel : kernels_of(table)) {
    set.implementations.push_back(fitted(table, kernel, device, options));
    rows += set.implementations.back().rows_fitted;
  }
  set.provenance = fmt::format(
      "fitted on {} of {} rows, among those that seed {} does not hold out ({:.0f} "
      "% of the shapes)",
      rows, table.rows.size(), options.seed, options.held_out_share * 100);
  return set;
}

std::vector<ScoredRow> scored(const Score& score, const DeviceSpec& device,
                              const ScoreOptions& options, bool all_held_out) {
  std::vector<ScoredRow> rows;
  const bool moved = score.constants.device != device.name;
  const MovedDevice elsewhere(device);
  for (const TimedRow& row : score.table.rows) {
    const Implementation* implementation = score.constants.find(row.kernel);
    if (implementation == nullptr) {
      std::vector<std::string> known;
      for (const Implementation& each : score.constants.implementations) {
        known.push_back(each.kernel);
      }
      throw ConfigError(fmt::format("{}:{}: {} has no constants for the kernel \"{}\"{}",
                                    score.table.file, row.line, score.constants.name, row.kernel,
                                    did_you_mean(row.kernel, known)));
    }
    const KernelForm& form = kernel_form(implementation->form);
    if (form.name != row.form) {
      throw ConfigError(fmt::format("{}:{}: \"{}\" has the form {} here, {} in {}",
                                    score.table.file, row.line, row.kernel, row.form, form.name,
                                    score.constants.name));
    }
    const bool held = all_held_out || held_out(row.family, options.seed, options.held_out_share);
    rows.push_back({&row,
                    moved ? estimate(*implementation, form, row.shape, elsewhere)
                          : estimate(*implementation, form, row.shape, device),
                    held});
  }
  return rows;
}

}  // namespace

Score score_table(TimingTable table, const DeviceSpec& device, const ScoreOptions& options) {
  Score score;
  score.table = std::move(table);
  score.device = device.name;
  bool all_held_out = false;
  if (options.constants) {
    score.constants = *options.constants;
    all_held_out = !same_split(score.constants, score.table, device, options);
  } else {
    score.constants = fit_table(score.table, device, options);
    score.fitted_here = true;
  }
  score.rows = scored(score, device, options, all_held_out);
  if (std::none_of(score.rows.begin(), score.rows.end(),
                   [](const ScoredRow& row) { return row.held_out; })) {
    throw ConfigError(score.table.file + ": no row is held out; hold out a larger share");
  }
  score.summaries = summarise(score.rows);
  return score;
}

}  // namespace indexpool
