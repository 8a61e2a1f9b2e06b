#include "indexpool/reports/cli/mutant_tables.hpp"

#include <fmt/format.h>

namespace indexpool::cli {
namespace {

using reports::Cell;
using reports::Table;
using verify::Fate;
using verify::Mutant;

Cell count_cell(std::int64_t count) { return {std::to_string(count), count}; }
Cell text_cell(std::string_view text) { return Cell(std::string(text)); }

std::string kills_text(const TimedRun& timed) {
  std::string text;
  for (const auto& [check, problems] : timed.run.kills)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", check, problems);
  return text;
}

Cell result_cell(const TimedRun& timed) {
  const Fate fate = timed.fate();
  if (!timed.mutant->equivalent.empty())
    return fate.killed ? Cell("killed, but equivalent") : Cell("equivalent");
  if (fate.killed_by_its_check) return Cell("killed");
  return fate.killed ? Cell("killed, but not by it") : Cell("SURVIVED");
}

std::string rule_word(const verify::ByRule& rule) {
  if (!rule.applies) return "-";
  return rule.noticed ? "noticed" : "let through";
}

// Counts of one class, or of all.
struct RuleCounts {
  int mutants = 0, ours = 0;
  std::vector<int> applicable, noticed, false_alarms;

  RuleCounts()
      : applicable(verify::accepted_rules().size()),
        noticed(verify::accepted_rules().size()),
        false_alarms(verify::accepted_rules().size()) {}
  void add(const TimedRun& timed) {
    if (!timed.mutant->equivalent.empty()) return;
    ++mutants;
    ours += timed.fate().killed_by_its_check ? 1 : 0;
    for (std::size_t i = 0; i < timed.rules.size(); ++i) {
      applicable[i] += timed.rules[i].applies ? 1 : 0;
      noticed[i] += timed.rules[i].noticed ? 1 : 0;
      false_alarms[i] += timed.rules[i].false_alarms > 0 ? 1 : 0;
    }
  }
};

Cell of_text(int part, int whole) {
  if (whole == 0) return {};
  return {fmt::format("{} of {}", part, whole), std::int64_t{part}};
}

std::vector<Cell> rule_row(std::string_view name, const RuleCounts& counts) {
  std::vector<Cell> row{text_cell(name), of_text(counts.ours, counts.mutants)};
  for (std::size_t i = 0; i < counts.noticed.size(); ++i)
    row.push_back(of_text(counts.noticed[i], counts.applicable[i]));
  return row;
}

}  // namespace

Table kill_matrix(const std::vector<TimedRun>& runs, bool by_check) {
  Table table{{{"mutant", "mutant"},
               {"class", "class"},
               {"kernel", "kernel"},
               {"file", "file"},
               {"named_check", "named check"},
               {"result", "result"},
               {"noticed_by", "noticed by (problems)"},
               {"seconds", "s", true}},
              {}};
  if (by_check) {
    for (const std::string_view check : verify::killing_checks())
      table.columns.push_back({std::string(check), std::string(check), true});
    table.columns.push_back({"why", "what goes wrong"});
  }
  for (const TimedRun& timed : runs) {
    const Mutant& mutant = *timed.mutant;
    std::vector<Cell> row{
        Cell(mutant.id),         Cell(mutant.fault),
        Cell(mutant.kernel),     Cell(mutant.file),
        Cell(mutant.killed_by),  result_cell(timed),
        Cell(kills_text(timed)), Cell(fmt::format("{:.2f}", timed.seconds), timed.seconds)};
    if (by_check) {
      for (const std::string_view check : verify::killing_checks()) {
        const auto found = timed.run.kills.find(std::string(check));
        row.push_back(found == timed.run.kills.end() ? Cell{} : count_cell(found->second));
      }
      row.push_back(Cell(mutant.why));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table score_table(const std::vector<verify::Score>& scores) {
  Table table{{{"class", "class"},
               {"mutants", "mutants", true},
               {"equivalent", "equivalent", true},
               {"killed_by_its_check", "killed by the named check", true},
               {"killed", "killed by any", true},
               {"percent", "%", true}},
              {}};
  for (const verify::Score& score : scores) {
    table.rows.push_back({Cell(score.name), count_cell(score.mutants), count_cell(score.equivalent),
                          count_cell(score.killed_by_its_check), count_cell(score.killed),
                          Cell(fmt::format("{:.1f}", score.percent()), score.percent())});
  }
  return table;
}

std::string survivors(const std::vector<TimedRun>& runs) {
  std::string text;
  for (const TimedRun& timed : runs) {
    const Mutant& mutant = *timed.mutant;
    if (!mutant.equivalent.empty()) {
      text += fmt::format("{} is equivalent: {}\n", mutant.id, mutant.equivalent);
    } else if (!timed.fate().killed_by_its_check) {
      text +=
          fmt::format("{} ({}) was not killed by {}{}\n", mutant.id, mutant.why, mutant.killed_by,
                      timed.run.killed() ? ", only by " + kills_text(timed) : "");
    }
  }
  return text;
}

Table rule_table(const std::vector<TimedRun>& runs) {
  Table table{{{"class", "class"}, {"ours", "our checks", true}}, {}};
  for (const verify::Rule& rule : verify::accepted_rules())
    table.columns.push_back({std::string(rule.name), std::string(rule.name), true});
  RuleCounts all;
  for (const verify::MutantClass& known : verify::mutant_classes()) {
    RuleCounts counts;
    for (const TimedRun& timed : runs)
      if (timed.mutant->fault == known.name) counts.add(timed);
    if (counts.mutants > 0) table.rows.push_back(rule_row(known.name, counts));
  }
  for (const TimedRun& timed : runs) all.add(timed);
  table.rows.push_back(rule_row("all", all));
  std::vector<Cell> alarms{Cell("correct outputs refused for"), count_cell(0)};
  for (const int count : all.false_alarms) alarms.push_back(count_cell(count));
  table.rows.push_back(std::move(alarms));
  return table;
}

Table rule_matrix(const std::vector<TimedRun>& runs) {
  Table table{{{"mutant", "mutant"}, {"class", "class"}, {"ours", "our checks"}}, {}};
  for (const verify::Rule& rule : verify::accepted_rules())
    table.columns.push_back({std::string(rule.name), std::string(rule.name)});
  for (const TimedRun& timed : runs) {
    if (!timed.mutant->equivalent.empty()) continue;
    std::vector<Cell> row{Cell(timed.mutant->id), Cell(timed.mutant->fault),
                          Cell(timed.fate().killed_by_its_check ? "noticed" : "let through")};
    for (const verify::ByRule& rule : timed.rules) row.push_back(Cell(rule_word(rule)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string rule_legend() {
  std::string text;
  for (const verify::Rule& rule : verify::accepted_rules())
    text += fmt::format("{} ({}): {}. {}\n", rule.name,
                        rule.of_selections ? "topk" : "every other operation", rule.statement,
                        rule.source);
  return text;
}

}  // namespace indexpool::cli
