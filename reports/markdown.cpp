#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/side_by_side.hpp"
#include "indexpool/reports/status_style.hpp"
#include "indexpool/reports/summary.hpp"
#include "indexpool/reports/utilisation.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t size_limit = 1 << 20, reserve = 64 << 10;
constexpr std::size_t reason_limit = 600, table_limit = 100;

std::string verdict_lines(const ReportInput& input) {
  std::string counts;
  for (const auto& [status, count] : status_counts(input.records)) {
    counts +=
        fmt::format("{}{} {}", counts.empty() ? "" : " · ", format_count(count), to_string(status));
  }
  const StatusStyle& row = style(overall_status(input.records));
  std::string out =
      fmt::format("# {}\n\n**{} {}.** {}\n", escape_markdown(shortened(input.title, 200)),
                  row.symbol, row.verdict, headline(input.records));
  if (!counts.empty()) out += "\nRecords: " + counts + "\n";
  return out;
}

std::string code_block(const std::string& command) {
  std::string fence = "```";
  while (command.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{0}\n{1}\n{0}\n", fence, printable(command));
}

std::string forecast_lines(const std::vector<Record>& records) {
  Table table{{{"op", "operation"},
               {"tokens", "tokens", true},
               {"device", "device"},
               {"bytes", "HBM bytes", true},
               {"time", "time", true},
               {"interval", "interval", true},
               {"bound", "limited by"}},
              {}};
  for (const Forecast& forecast : forecasts(records)) {
    const Prediction& prediction = forecast.prediction;
    table.rows.push_back({forecast.op, format_tokens(forecast.tokens), prediction.device,
                          format_bytes(static_cast<double>(prediction.hbm_bytes.value)),
                          format_seconds(prediction.time.value),
                          format_interval(prediction.low, prediction.high), prediction.bound_by});
    if (table.rows.size() == table_limit) break;
  }
  if (table.rows.empty()) return "";
  return "\n## What it would take\n\nOne layer; decode operations for one new token.\n\n" +
         render(table, Format::md);
}

std::string problem_line(const Record& record) {
  std::string reason = record.verdict.reason;
  for (const Check& check : record.verdict.checks) {
    if (reason.empty() && check.status == record.verdict.status) reason = check.reason;
  }
  return fmt::format("- **{}** {} / {} on {}, {}: {}\n  repeat: {}\n",
                     to_string(record.verdict.status), escape_markdown(record.op),
                     escape_markdown(record.implementation),
                     escape_markdown(record.environment.target), escape_markdown(record.case_name),
                     escape_markdown(shortened(reason, reason_limit)),
                     escape_markdown(shortened(record.repeat, reason_limit)));
}

// As many lines as fit; says how many did not.
void append_bounded(std::string& out, const std::vector<std::string>& lines,
                    std::string_view rest) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (out.size() + lines[i].size() > size_limit - reserve) {
      out += fmt::format("\n{} more {} in records.jsonl.\n",
                         format_count(static_cast<std::int64_t>(lines.size() - i)), rest);
      return;
    }
    out += lines[i];
  }
}

std::string glossary_lines() {
  std::string out = "\n## Statuses\n\n";
  for (const StatusStyle& row : status_styles()) {
    out += fmt::format("- **{}**: {}\n", to_string(row.status), row.meaning);
  }
  return out;
}

}  // namespace

std::string markdown(const ReportInput& input) {
  std::string out = verdict_lines(input);
  if (!input.records.empty()) {
    Table table = comparison_table(input.records);
    table.rows.resize(std::min(table.rows.size(), table_limit));
    out += "\n## What was compared\n\n" + render(table, Format::md);
  }
  out += forecast_lines(input.records);
  if (!input.command.empty())
    out += "\n## Run it again\n\n" + code_block(shortened(input.command, 10'000));
  out += utilisation_markdown(input.records);
  std::vector<std::string> problems;
  for (const std::size_t i : to_look_at(input.records)) {
    problems.push_back(problem_line(input.records[i]));
  }
  if (!problems.empty()) {
    out += "\n## What to look at\n\n";
    append_bounded(out, problems, "records");
  }
  if (input.records.size() > 1 && input.records.size() <= most_rows_for_people) {
    out += "\n## Every record\n\n" + side_by_side(input.records, Format::md);
  }
  return out + glossary_lines();
}

}  // namespace indexpool::reports
