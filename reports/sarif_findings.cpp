// From records and the gate to findings with a place in the source.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "indexpool/reports/sarif.hpp"

namespace indexpool::reports {
namespace {

namespace fs = std::filesystem;

bool digit(char c) { return c >= '0' && c <= '9'; }

// "path/file.ext" that ends at `end`: back to a space or a quote, at least one '.' in it.
std::string_view file_before(std::string_view text, std::size_t end) {
  std::size_t start = end;
  while (start > 0 && text[start - 1] > ' ' && text[start - 1] != ':' && text[start - 1] != '"' &&
         text[start - 1] != '\'' && text[start - 1] != '(') {
    --start;
  }
  const std::string_view file = text.substr(start, end - start);
  const std::size_t dot = file.rfind('.');
  const bool named = dot != std::string_view::npos && dot > 0 && dot + 1 < file.size() &&
                     std::isalpha(static_cast<unsigned char>(file[dot + 1])) != 0;
  return named ? file : std::string_view{};
}

SourcePlace place_of(const std::string& reason, const std::string& kernel, const Sources& sources) {
  SourcePlace place = place_in(reason);
  if (!place.file.empty()) {
    place.file = relative_uri(place.file, sources.root);
    return place;
  }
  const auto known = sources.kernels.find(kernel);
  const std::string& file = known == sources.kernels.end() ? sources.otherwise : known->second;
  return {file.empty() ? "" : relative_uri(file, sources.root), 0};
}

bool fault(Status status) {
  return status == Status::failed || status == Status::error || status == Status::untrusted;
}

std::string level_of(Status status) { return status == Status::untrusted ? "warning" : "error"; }

Finding finding_of(const Record& record, std::string rule, Status status, const std::string& reason,
                   const Sources& sources) {
  return {
      std::move(rule), level_of(status),
      fmt::format("{} / {} on {}, {}: {}", record.op,
                  record.implementation.empty() ? "no kernel" : record.implementation,
                  record.environment.target, record.case_name,
                  reason.empty() ? std::string(to_string(status)) : reason),
      place_of(reason, record.implementation.empty() ? record.op : record.implementation, sources),
      record.repeat};
}

// "out_of_bounds: kernels/pool.cuh:12: ...": what the executor calls it.
std::string executor_kind(const std::string& reason) {
  const std::size_t end = reason.find(": ");
  const std::string kind = end == std::string::npos ? "" : reason.substr(0, end);
  const bool word = !kind.empty() && std::all_of(kind.begin(), kind.end(), [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z');
  });
  return word ? kind : "error";
}

}  // namespace

SourcePlace place_in(std::string_view reason) {
  for (std::size_t colon = reason.find(':'); colon != std::string_view::npos;
       colon = reason.find(':', colon + 1)) {
    const std::string_view file = file_before(reason, colon);
    if (file.empty() || colon + 1 >= reason.size() || !digit(reason[colon + 1])) continue;
    std::int64_t line = 0;
    for (std::size_t i = colon + 1; i < reason.size() && digit(reason[i]); ++i) {
      line = std::min<std::int64_t>(line * 10 + (reason[i] - '0'), 1'000'000'000);
    }
    return {std::string(file), static_cast<int>(line)};
  }
  return {};
}

std::string relative_uri(const fs::path& path, const fs::path& root) {
  fs::path relative = path.lexically_normal();
  if (relative.is_absolute()) relative = relative.lexically_relative(root.lexically_normal());
  const bool outside = relative.empty() || *relative.begin() == "..";
  if (outside) {
    // The build's include tree spells <build>/include/indexpool/kernels/pool.cuh.
    const std::string text = path.generic_string();
    constexpr std::string_view include = "/include/indexpool/";
    const std::size_t at = text.find(include);
    relative =
        at == std::string::npos ? path.filename() : fs::path(text.substr(at + include.size()));
  }
  if (relative == ".." || relative == ".") return "";
  std::string uri;
  for (const char c : relative.generic_string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-._~/+@").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::vector<Finding> record_findings(const std::vector<Record>& records, const Sources& sources) {
  std::vector<Finding> findings;
  for (const Record& record : records) {
    const Verdict& verdict = record.verdict;
    if (!fault(verdict.status)) continue;
    bool explained = false;
    for (const Check& check : verdict.checks) {
      if (!fault(check.status)) continue;
      explained = explained || check.status == verdict.status;
      findings.push_back(finding_of(record, "check/" + check.name, check.status,
                                    check.name + ": " + check.reason, sources));
    }
    if (explained) continue;
    const std::string rule = verdict.status == Status::error
                                 ? "executor/" + executor_kind(verdict.reason)
                                 : "verdict/" + std::string(to_string(verdict.status));
    findings.push_back(finding_of(record, rule, verdict.status, verdict.reason, sources));
  }
  return findings;
}

std::vector<Finding> gate_findings(const Gate& gate, const Sources& sources) {
  std::vector<Finding> findings;
  for (const GateFinding& finding : gate.findings) {
    const bool told =
        finding.aspect == Aspect::verdicts &&
        (finding.after == "failed" || finding.after == "error" || finding.after == "untrusted");
    if (finding.change != Change::regression || told) continue;
    findings.push_back({"gate/" + std::string(to_string(finding.aspect)), "error", finding.sentence,
                        place_of(finding.reason, finding.kernel, sources), finding.repeat});
  }
  return findings;
}

}  // namespace indexpool::reports
