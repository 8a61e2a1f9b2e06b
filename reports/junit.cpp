// JUnit XML as CI servers read it: a suite per operation and implementation, a test case per check;
// a record without checks is one test case.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

struct TestCase {
  std::string name;
  Status status;
  std::string reason;
};

std::vector<TestCase> test_cases(const Record& record) {
  std::vector<TestCase> cases;
  bool explained = false;
  for (const Check& check : record.verdict.checks) {
    cases.push_back({record.case_name + ": " + check.name, check.status, check.reason});
    explained = explained || check.status == record.verdict.status;
  }
  // The verdict may say more than its checks: nothing ran, or the run broke off.
  if (cases.empty() || (!explained && record.verdict.status != Status::passed)) {
    cases.push_back({record.case_name + ": verdict", record.verdict.status, record.verdict.reason});
  }
  return cases;
}

std::string_view element_for(Status status) {
  switch (status) {
    case Status::failed:
    case Status::untrusted:
      return "failure";
    case Status::error:
      return "error";
    case Status::skipped:
    case Status::unsupported:
      return "skipped";
    case Status::passed:
    case Status::marginal:
      break;
  }
  return "";
}

std::string test_case_text(const TestCase& test, const std::string& class_name,
                           const std::string& repeat) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
                                       escape_xml(class_name), escape_xml(test.name));
  const std::string_view element = element_for(test.status);
  const std::string reason = escape_xml(shortened(test.reason, 2000));
  if (element == "skipped") {
    return fmt::format("{}><skipped message=\"{}\"/></testcase>\n", head, reason);
  }
  if (!element.empty()) {
    return fmt::format("{0}><{1} type=\"{2}\" message=\"{3}\">{3}\nrepeat: {4}</{1}></testcase>\n",
                       head, element, to_string(test.status), reason, escape_xml(repeat));
  }
  if (test.status == Status::marginal) {
    return fmt::format("{}><system-out>marginal: {}</system-out></testcase>\n", head, reason);
  }
  return head + "/>\n";
}

struct SuiteText {
  std::string body;
  std::int64_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

void count(SuiteText& suite, Status status) {
  const std::string_view element = element_for(status);
  suite.tests += 1;
  suite.failures += element == "failure" ? 1 : 0;
  suite.errors += element == "error" ? 1 : 0;
  suite.skipped += element == "skipped" ? 1 : 0;
}

std::string counts_text(const SuiteText& suite) {
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\"",
                     suite.tests, suite.failures, suite.errors, suite.skipped);
}

}  // namespace

std::string junit(const ReportInput& input) {
  std::map<std::tuple<int, std::string>, SuiteText> suites;
  SuiteText all;
  for (const Record& record : input.records) {
    const std::string name =
        fmt::format("{}.{}.{}", record.op, record.implementation, record.environment.target);
    SuiteText& suite = suites[{operation_rank(record.op), name}];
    for (const TestCase& test : test_cases(record)) {
      suite.body += test_case_text(test, name, record.repeat);
      count(suite, test.status);
      count(all, test.status);
    }
  }
  std::string out =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n",
                  escape_xml(input.title), counts_text(all));
  for (const auto& [key, suite] : suites) {
    out += fmt::format("  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n",
                       escape_xml(std::get<1>(key)), counts_text(suite), suite.body);
  }
  return out + "</testsuites>\n";
}

}  // namespace indexpool::reports
