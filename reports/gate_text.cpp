// The gate's findings for people and as records.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/gate.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/table.hpp"

namespace indexpool::reports {
namespace {

constexpr std::size_t size_limit = 1 << 20, reserve = 64 << 10;
constexpr std::size_t sentence_limit = 1000, records_of_an_aspect = 1000;

struct Heading {
  Change change;
  const char* title;
};
constexpr Heading headings[] = {{Change::regression, "Worse than the baseline"},
                                {Change::fresh, "Not in the baseline"},
                                {Change::improvement, "Better than the baseline"}};

std::int64_t count(const Gate& gate, Change change) {
  return std::count_if(gate.findings.begin(), gate.findings.end(),
                       [&](const GateFinding& finding) { return finding.change == change; });
}

std::int64_t count(const Gate& gate, Change change, Aspect aspect) {
  return std::count_if(gate.findings.begin(), gate.findings.end(), [&](const GateFinding& finding) {
    return finding.change == change && finding.aspect == aspect;
  });
}

bool nothing_compared(const Gate& gate) { return gate.compared.empty(); }

std::string headline(const Gate& gate, const std::string& baseline) {
  const std::int64_t worse = count(gate, Change::regression);
  if (worse > 0) {
    return fmt::format("The gate is shut: {} finding{} worse than {}.", format_count(worse),
                       worse == 1 ? " is" : "s are", baseline);
  }
  if (nothing_compared(gate)) {
    return fmt::format("Nothing was compared: {} has nothing that this run has.", baseline);
  }
  return fmt::format("The gate is open: nothing is worse than {}.", baseline);
}

Table aspect_table(const Gate& gate) {
  Table table{{{"aspect", "what"},
               {"compared", "compared", true},
               {"worse", "worse", true},
               {"new", "new", true},
               {"better", "better", true}},
              {}};
  for (const Aspect aspect : {Aspect::verdicts, Aspect::coverage, Aspect::traffic,
                              Aspect::resources, Aspect::kill_score, Aspect::utilisation}) {
    const auto found = gate.compared.find(aspect);
    const std::int64_t compared = found == gate.compared.end() ? 0 : found->second;
    std::vector<Cell> row{{std::string(to_string(aspect))}, {format_count(compared), compared}};
    bool any = compared > 0;
    for (const Heading& heading : headings) {
      const std::int64_t findings = count(gate, heading.change, aspect);
      row.emplace_back(format_count(findings), findings);
      any = any || findings > 0;
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

std::string markdown_line(const GateFinding& finding) {
  std::string line = fmt::format("- **{}** {}\n", to_string(finding.aspect),
                                 escape_markdown(shortened(finding.sentence, sentence_limit)));
  if (finding.change == Change::regression && !finding.repeat.empty()) {
    line += fmt::format("  repeat: {}\n", escape_markdown(shortened(finding.repeat, 600)));
  }
  return line;
}

// As many lines as fit below `limit` bytes, then how many did not.
void append_list(std::string& out, const Gate& gate, const Heading& heading, std::size_t limit) {
  std::int64_t left = count(gate, heading.change);
  if (left == 0) return;
  out += fmt::format("\n## {}\n\n", heading.title);
  for (const GateFinding& finding : gate.findings) {
    if (finding.change != heading.change) continue;
    const std::string line = markdown_line(finding);
    if (out.size() + line.size() > limit) break;
    out += line;
    --left;
  }
  if (left > 0) out += fmt::format("\n{} more are not shown here.\n", format_count(left));
}

Record record_of(Aspect aspect, const std::string& baseline, const std::string& repeat) {
  Record record;
  record.case_name = "against the baseline";
  record.op = "gate";
  record.implementation = to_string(aspect);
  record.reference = baseline;
  record.environment.target = "records";
  record.repeat = repeat;
  record.verdict.status = Status::passed;
  return record;
}

Record record_of(const GateFinding& finding, const std::string& baseline,
                 const std::string& repeat) {
  Record record =
      record_of(finding.aspect, baseline, finding.repeat.empty() ? repeat : finding.repeat);
  record.case_name = fmt::format("{}{}{}: {}", finding.op, finding.op.empty() ? "" : " / ",
                                 finding.kernel, finding.what);
  record.verdict.status = Status::failed;
  record.verdict.reason = finding.sentence;
  return record;
}

}  // namespace

std::vector<Record> gate_records(const Gate& gate, const std::string& baseline,
                                 const std::string& repeat) {
  std::vector<Record> records;
  std::map<Aspect, std::size_t> worse;
  for (const GateFinding& finding : gate.findings) {
    if (finding.change != Change::regression) continue;
    if (++worse[finding.aspect] > records_of_an_aspect) continue;
    records.push_back(record_of(finding, baseline, repeat));
  }
  for (const auto& [aspect, compared] : gate.compared) {
    if (!worse.contains(aspect)) records.push_back(record_of(aspect, baseline, repeat));
  }
  return records;
}

std::string gate_markdown(const Gate& gate, const std::string& baseline,
                          const std::string& command) {
  std::string out = fmt::format("# Gate\n\n**{} {}**\n\n", passed(gate) ? "✓" : "✗",
                                escape_markdown(shortened(headline(gate, baseline), 600)));
  out += render(aspect_table(gate), Format::md);
  for (std::size_t i = 0; i < std::min<std::size_t>(gate.notes.size(), 20); ++i) {
    out += fmt::format("{}- {}\n", i == 0 ? "\n" : "",
                       escape_markdown(shortened(gate.notes[i], sentence_limit)));
  }
  // What is worse comes first and may take all but a corner; that is kept for the command.
  for (const Heading& heading : headings) append_list(out, gate, heading, size_limit - reserve);
  std::string fence = "```";
  while (command.find(fence) != std::string::npos && fence.size() < 64) fence += '`';
  return out + fmt::format("\n## Run it again\n\n{0}\n{1}\n{0}\n", fence,
                           printable(shortened(command, 10'000)));
}

std::string gate_text(const Gate& gate, const std::string& baseline, std::size_t most) {
  std::string out = render(aspect_table(gate), Format::table);
  for (const std::string& note : gate.notes) out += printable(note) + "\n";
  for (const Heading& heading : headings) {
    const auto all = static_cast<std::size_t>(count(gate, heading.change));
    if (all == 0) continue;
    out += fmt::format("\n{}:\n", heading.title);
    std::size_t shown = 0;
    for (const GateFinding& finding : gate.findings) {
      if (finding.change != heading.change || shown == most) continue;
      out += fmt::format("  {}: {}\n", to_string(finding.aspect),
                         printable(shortened(finding.sentence, sentence_limit)));
      if (heading.change == Change::regression && !finding.repeat.empty()) {
        out += fmt::format("    repeat: {}\n", printable(finding.repeat));
      }
      ++shown;
    }
    if (all > shown) out += fmt::format("  and {} more; --out keeps them all\n", all - shown);
  }
  return out + fmt::format("\n{} {}\n", passed(gate) ? "✓" : "✗", headline(gate, baseline));
}

}  // namespace indexpool::reports
