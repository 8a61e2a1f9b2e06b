// indexpool mutants: would the checks notice?
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/mutant_tables.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"

namespace indexpool::cli {
namespace {

struct MutantsOptions {
  std::string fault, id, out, module = INDEXPOOL_MUTANTS_MODULE;
  MutantRunOptions how;
  FormatOption format;
};

std::vector<const verify::Mutant*> choose(const std::vector<verify::Mutant>& table,
                                          const MutantsOptions& options) {
  std::vector<std::string> classes;
  for (const verify::MutantClass& known : verify::mutant_classes())
    classes.emplace_back(known.name);
  if (!options.fault.empty()) require_known("class", options.fault, classes);
  if (!options.id.empty()) verify::find_mutant(table, options.id);
  std::vector<const verify::Mutant*> chosen;
  for (const verify::Mutant& mutant : table) {
    const bool wanted = (options.fault.empty() || mutant.fault == options.fault) &&
                        (options.id.empty() || mutant.id == options.id);
    if (wanted) chosen.push_back(&mutant);
  }
  if (chosen.empty())
    throw ConfigError(fmt::format("mutant {} is not of class {}", options.id, options.fault));
  return chosen;
}

// All tables one below the other.
std::string document(const std::vector<TimedRun>& runs, const std::vector<verify::Score>& scores,
                     const std::string& closing, bool rules, reports::Format format, bool colour) {
  std::string text =
      reports::render(kill_matrix(runs, format != reports::Format::table), format, colour);
  text += '\n' + reports::render(score_table(scores), format, colour);
  if (rules) {
    text += "\nWhat rules of public projects notice of the same runs:\n\n" +
            reports::render(rule_table(runs), format, colour) + '\n' + rule_legend();
  }
  const std::string left = survivors(runs);
  return text + (left.empty() ? "" : '\n' + left) + '\n' + closing + '\n';
}

void write_all(const std::vector<TimedRun>& runs, const std::vector<verify::Score>& scores,
               const std::string& closing, const MutantsOptions& options) {
  const std::filesystem::path folder = options.out;
  const auto write = [&](const char* name, const std::string& text) {
    write_text(folder / name, text);
  };
  using enum reports::Format;
  write("mutants.md", document(runs, scores, closing, options.how.rules, md, false));
  write("mutants.csv", reports::render(kill_matrix(runs, true), csv));
  write("mutants.json", reports::render(kill_matrix(runs, true), json));
  write("scores.json", reports::render(score_table(scores), json));
  if (!options.how.rules) return;
  write("rules.json", reports::render(rule_matrix(runs), json));
  write("rules.csv", reports::render(rule_matrix(runs), csv));
}

std::string closing_line(const std::vector<verify::Score>& scores, double seconds) {
  const verify::Score& all = scores.back();
  return fmt::format(
      "{} of {} mutants killed by the check that is named for them ({:.1f} %), {} "
      "equivalent; {:.0f} s",
      all.killed_by_its_check, all.counted(), all.percent(), all.equivalent, seconds);
}

int mutants_with(const MutantsOptions& options) {
  const reports::Format format = options.format.parsed();
  const std::vector<verify::Mutant> table = verify::mutant_table();
  const auto chosen = choose(table, options);
  const verify::MutantModule module(options.module);
  const auto start = std::chrono::steady_clock::now();
  std::vector<TimedRun> runs;
  {
    Progress progress;
    runs = run_mutants(chosen, module, options.how,
                       [&](const std::string& text) { progress.show(text); });
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::vector<verify::Fate> fates;
  for (const TimedRun& timed : runs) fates.push_back(timed.fate());
  const auto scores = verify::scores_of(fates);
  const std::string wrong = verify::why_not_enough(scores, fates);
  const std::string closing = closing_line(scores, taken.count());
  if (!options.out.empty()) write_all(runs, scores, closing, options);
  const bool for_people = format == reports::Format::table || format == reports::Format::md;
  const auto rows = [&] {
    return reports::render(options.how.rules ? rule_matrix(runs) : kill_matrix(runs, true), format);
  };
  print(for_people ? document(runs, scores, closing, options.how.rules, format, colour_wanted())
                   : rows());
  if (!wrong.empty()) note(wrong);
  return wrong.empty() ? exit_passed : exit_failed;
}

std::function<int()> declare_mutants(CLI::App& app) {
  auto options = std::make_shared<MutantsOptions>();
  options->how.jobs = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  app.add_option("--class", options->fault, "mutants of one class only");
  app.add_option("--id", options->id, "one mutant only");
  app.add_flag("--quick", options->how.quick,
               "each mutant only up to its first kill by the named check");
  app.add_flag("--rules", options->how.rules,
               "what rules of public projects would have let through");
  app.add_option("--jobs", options->how.jobs, "threads")->check(CLI::Range(1, 64));
  app.add_option("--module", options->module, "the compiled mutants, a shared object");
  app.add_option("--out", options->out, "folder for the tables: Markdown, CSV, JSON");
  options->format.declare(app);
  return [options] { return mutants_with(*options); };
}

}  // namespace

extern const Command mutants_command = {
    "mutants", "Kernels and plans with one fault each: which check notices?",
    "  indexpool mutants\n"
    "  indexpool mutants --class overflow --format md\n"
    "  indexpool mutants --id scale_447\n"
    "  indexpool mutants --rules --out mutants\n",
    declare_mutants};

}  // namespace indexpool::cli
