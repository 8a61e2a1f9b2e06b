// indexpool field: bugs of public reports, each refused by the check that is named for it.
#include "indexpool/verify/field/field.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/journal.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::cli {
namespace {

struct FieldOptions {
  std::vector<std::string> ids;
  std::string out;
  FormatOption format;
};

struct Judged {
  verify::FieldScenario scenario;
  verify::FieldResult result;
};

std::vector<verify::FieldScenario> chosen(const verify::FieldSuite& suite,
                                          const std::vector<std::string>& ids) {
  if (ids.empty()) return suite.scenarios;
  std::vector<verify::FieldScenario> scenarios;
  scenarios.reserve(ids.size());
  for (const std::string& id : ids) scenarios.push_back(verify::find_scenario(suite, id));
  return scenarios;
}

reports::Table table_of(const std::vector<Judged>& all) {
  reports::Table table{{{"id", "scenario"},
                        {"kind", "kind"},
                        {"symptom", "symptom"},
                        {"references", "reported as"},
                        {"caught_by", "caught by"},
                        {"stand_in", "stand-in"},
                        {"reason", "what the check said"},
                        {"ours", "ours"}},
                       {}};
  for (const auto& [scenario, result] : all) {
    const std::string more =
        scenario.references.size() > 1 ? fmt::format(" +{}", scenario.references.size() - 1) : "";
    const Verdict& caught = result.stand_in.verdict;
    const bool refused = caught.status == Status::passed;
    table.rows.push_back({scenario.id, scenario.kind, scenario.symptom,
                          reports::Cell(scenario.references.front() + more,
                                        fmt::format("{}", fmt::join(scenario.references, ", "))),
                          scenario.caught_by,
                          reports::Cell(refused ? "refused" : "NOT refused",
                                        std::string(refused ? "refused" : "not refused")),
                          refused ? result.refusal : caught.reason,
                          reports::status_cell(result.ours.verdict.status)});
  }
  return table;
}

std::string closing_lines(const std::vector<Judged>& all, const verify::FieldSuite& suite) {
  std::string text = "\n";
  std::size_t passed = 0;
  for (const auto& [scenario, result] : all) {
    if (result.passed()) ++passed;
    const Verdict& ours = result.ours.verdict;
    if (ours.status != Status::passed)
      text += fmt::format("{}: ours {}: {}\n", scenario.id, to_string(ours.status), ours.reason);
  }
  text += fmt::format(
      "{} of {} scenarios: the stand-in refused by the check named for it, ours passed by it.\n",
      passed, all.size());
  for (const verify::FieldOmission& omission : suite.not_represented) {
    text += fmt::format("Not represented: {} ({}): {}.\n", fmt::join(omission.references, ", "),
                        omission.symptom, omission.why);
  }
  return text;
}

std::string command_of(const FieldOptions& options) {
  std::string command = "indexpool field";
  for (const std::string& id : options.ids) command += " --id " + shell_quoted(id);
  return command;
}

int run_field(const FieldOptions& options) {
  const reports::Format format = options.format.parsed();
  if (!options.out.empty()) require_writable_folder(options.out);
  const verify::FieldSuite suite = verify::field_suite();
  const auto scenarios = chosen(suite, options.ids);
  std::vector<Judged> all;
  std::vector<Record> records;
  {
    Progress progress;
    for (const verify::FieldScenario& scenario : scenarios) {
      progress.show(fmt::format("{}/{} {}", all.size() + 1, scenarios.size(), scenario.id));
      all.push_back({scenario, verify::run_scenario(scenario)});
      for (Record* record : {&all.back().result.stand_in, &all.back().result.ours}) {
        record->environment.version = INDEXPOOL_VERSION;
        records.push_back(*record);
      }
    }
  }
  if (!options.out.empty()) {
    reports::write_report(options.out,
                          {"Bugs of the field: " + suite.why, records, {}, command_of(options)});
    note("report: " + options.out + "/report.html");
  }
  print(reports::render(table_of(all), format, colour_wanted()));
  if (format == reports::Format::table) print(closing_lines(all, suite));
  return exit_code(records);
}

std::function<int()> declare_field(CLI::App& app) {
  auto options = std::make_shared<FieldOptions>();
  app.add_option("--id", options->ids, "only these scenarios")->expected(1, -1);
  app.add_option("--out", options->out, "folder for the report and records.jsonl");
  options->format.declare(app);
  return [options] { return run_field(*options); };
}

}  // namespace

extern const Command field_command = {
    "field", "Bugs of public reports: a stand-in of each must be refused, and ours must pass",
    "  indexpool field\n"
    "  indexpool field --id blocks_read_as_pages packed_stride_int32\n"
    "  indexpool field --format md --out field-report\n",
    declare_field};

}  // namespace indexpool::cli
