// Findings as SARIF, and as annotations.
#include "indexpool/reports/sarif.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/reports/escape.hpp"

namespace indexpool::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t message_limit = 2000;

struct RuleText {
  std::string_view prefix, text;
};
constexpr RuleText rule_texts[] = {
    {"executor/", "The CPU executor refused the kernel"},
    {"check/", "A check of a verdict did not hold, or could not have failed"},
    {"verdict/", "An operation has no verdict that passed"},
    {"gate/", "Worse than the checked-in baseline"}};

std::string_view rule_text(std::string_view rule) {
  for (const RuleText& row : rule_texts) {
    if (rule.starts_with(row.prefix)) return row.text;
  }
  return "Finding";
}

// FNV-1a, 64 bits: a stable name for a finding, so that a host can tell old ones from new ones.
std::string fingerprint(const Finding& finding) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::string* part : {&finding.rule, &finding.place.file, &finding.message}) {
    for (const char c : *part) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    hash = (hash ^ 0xffu) * 0x100000001b3u;
  }
  return fmt::format("{:016x}", hash);
}

Json location_of(const SourcePlace& place) {
  Json physical = {{"artifactLocation", {{"uri", place.file}, {"uriBaseId", "SRCROOT"}}}};
  physical["region"] = {{"startLine", std::max(place.line, 1)}};
  return {{"physicalLocation", std::move(physical)}};
}

Json result_of(const Finding& finding, std::size_t rule_index) {
  Json result = {{"ruleId", finding.rule},
                 {"ruleIndex", rule_index},
                 {"level", finding.level},
                 {"message", {{"text", printable(shortened(finding.message, message_limit))}}},
                 {"partialFingerprints", {{"indexpool/v1", fingerprint(finding)}}}};
  if (!finding.place.file.empty()) {
    result["locations"] = Json::array({location_of(finding.place)});
  }
  if (!finding.repeat.empty()) {
    result["properties"] = {{"repeat", printable(shortened(finding.repeat, message_limit))}};
  }
  return result;
}

Json invocation_of(const std::string& command, std::size_t left_out) {
  Json invocation = {{"executionSuccessful", true}};
  if (!command.empty()) invocation["commandLine"] = printable(command);
  if (left_out > 0) {
    invocation["toolExecutionNotifications"] = Json::array(
        {{{"level", "warning"},
          {"message", {{"text", fmt::format("{} more findings are left out", left_out)}}}}});
  }
  return invocation;
}

std::string escape_command(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string sarif(const std::vector<Finding>& findings, const std::string& version,
                  const std::string& command) {
  const std::size_t shown = std::min(findings.size(), most_sarif_results);
  std::map<std::string, std::size_t> index;
  Json rules = Json::array(), results = Json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    const auto [rule, is_new] = index.try_emplace(findings[i].rule, index.size());
    if (is_new) {
      rules.push_back({{"id", findings[i].rule},
                       {"shortDescription", {{"text", rule_text(findings[i].rule)}}}});
    }
    results.push_back(result_of(findings[i], rule->second));
  }
  const Json run = {
      {"tool",
       {{"driver",
         {{"name", "indexpool"}, {"semanticVersion", version}, {"rules", std::move(rules)}}}}},
      {"invocations", Json::array({invocation_of(command, findings.size() - shown)})},
      {"originalUriBaseIds",
       {{"SRCROOT", {{"description", {{"text", "The root of the checkout"}}}}}}},
      {"columnKind", "unicodeCodePoints"},
      {"results", std::move(results)}};
  const Json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", Json::array({run})}};
  return log.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string annotations(const std::vector<Finding>& findings, std::size_t most) {
  std::map<std::string, std::size_t> shown;
  std::string out;
  for (const Finding& finding : findings) {
    const std::string level = finding.level == "note" ? "notice" : finding.level;
    if (shown[level]++ >= most) continue;
    std::string where;
    if (!finding.place.file.empty()) {
      where = fmt::format("file={},line={},", escape_command(finding.place.file, true),
                          std::max(finding.place.line, 1));
    }
    out += fmt::format("::{} {}title={}::{}\n", level, where,
                       escape_command("indexpool " + finding.rule, true),
                       escape_command(shortened(finding.message, message_limit), false));
  }
  return out;
}

}  // namespace indexpool::reports
