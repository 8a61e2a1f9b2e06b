#include "indexpool/reports/cli/terminal.hpp"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/side_by_side.hpp"
#include "indexpool/reports/status_style.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::cli {
namespace {

struct FormatName {
  const char* name;
  reports::Format format;
};
constexpr FormatName format_names[] = {{"table", reports::Format::table},
                                       {"json", reports::Format::json},
                                       {"csv", reports::Format::csv},
                                       {"md", reports::Format::md}};
constexpr std::size_t most_problems = 20;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string problem_text(const Record& record, bool colour) {
  const Verdict& verdict = record.verdict;
  const reports::StatusStyle& look = reports::style(verdict.status);
  const std::string status = fmt::format("{}{} {}{}", colour ? look.ansi : "", look.symbol,
                                         to_string(verdict.status), colour ? "\x1b[0m" : "");
  std::string text =
      fmt::format("{} {} / {} on {}, {}: {}\n", status, record.op, record.implementation,
                  record.environment.target, record.case_name, one_line(verdict.reason));
  if (!record.repeat.empty()) text += fmt::format("  repeat: {}\n", record.repeat);
  return text;
}

std::string summary_text(const std::vector<Record>& records, bool colour) {
  const std::vector<std::size_t> order = reports::to_look_at(records);
  std::string text = "\n";
  for (std::size_t i = 0; i < std::min(order.size(), most_problems); ++i) {
    text += problem_text(records[order[i]], colour);
  }
  if (order.size() > most_problems) {
    text += fmt::format("and {} more; --out keeps them all\n", order.size() - most_problems);
  }
  if (!order.empty()) text += '\n';
  const reports::StatusStyle& look = reports::style(overall_status(records));
  return text + fmt::format("{}{} {}{}. {}\n", colour ? look.ansi : "", look.symbol, look.verdict,
                            colour ? "\x1b[0m" : "", reports::headline(records));
}

}  // namespace

void FormatOption::declare(CLI::App& app) {
  app.add_option("--format", name, "table, json, csv or md")->type_name("FORMAT");
}

reports::Format FormatOption::parsed() const {
  std::vector<std::string> known;
  for (const FormatName& row : format_names) {
    if (name == row.name) return row.format;
    known.emplace_back(row.name);
  }
  throw ConfigError(unknown_text("format", name, known));
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw EnvironmentError("could not write to standard output");
  }
}

void note(const std::string& text) { fmt::print(stderr, "{}\n", text); }

bool colour_wanted() { return isatty(STDOUT_FILENO) == 1; }

void print_records(const std::vector<Record>& records, reports::Format format) {
  const bool colour = colour_wanted();
  print(reports::side_by_side(records, format, colour));
  if (format == reports::Format::table) print(summary_text(records, colour));
}

int exit_code(const std::vector<Record>& records) {
  switch (overall_status(records)) {
    case Status::passed:
    case Status::marginal:
      return exit_passed;
    case Status::failed:
    case Status::error:
      return exit_failed;
    case Status::untrusted:
    case Status::unsupported:
    case Status::skipped:
      break;  // nothing was proven about what was asked
  }
  return exit_untrusted;
}

Progress::Progress()
    : start_(std::chrono::steady_clock::now()), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::show(const std::string& text) {
  using std::chrono::seconds;
  if (!terminal_ || std::chrono::steady_clock::now() - start_ < seconds(1)) return;
  clear();
  fmt::print(stderr, "{}", one_line(text).substr(0, 100));
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace indexpool::cli
