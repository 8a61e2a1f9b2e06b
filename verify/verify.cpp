#include "indexpool/verify/verify.hpp"

#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/operations.hpp"

namespace indexpool::verify {
namespace {

std::vector<Record> run(const Case& test_case, const Options& options, bool about_ties) {
  if (options.target == "reference") return reference_records(test_case, options);
  Journey journey{test_case, options, about_ties, {}, {}, {}, {}, {}, 0, {}, {}, {}};
  const auto progress = [&](const char* what) {
    if (options.progress) options.progress(test_case.name + ": " + what);
  };
  if (!test_case.expected.empty()) {
    progress("reference");
    journey.golden = reference::compare_expected(test_case);
  }
  if (test_case.projections.present()) {
    journey.records.push_back(project_record(test_case, options, journey.golden));
  }
  progress("pool");
  verify_cache(journey);
  progress("quantize_query");
  verify_queries(journey);
  progress("logits");
  verify_logits(journey);
  progress("topk");
  verify_topk(journey);
  return std::move(journey.records);
}

}  // namespace

std::vector<Record> verify_case(const Case& test_case, const Options& options) {
  return run(test_case, options, false);
}

std::vector<Record> verify_problem(const Problem& problem, const Options& options) {
  Options own = options;
  own.schedule = problem.schedule;
  own.states_per_page = problem.states_per_page;
  own.seed = problem.seed;
  if (own.repeat.empty()) own.repeat = repeat_line(problem);
  std::vector<Record> records = run(make_case(problem), own, find_fill(problem.fill).about_ties);
  for (Record& record : records) record.problem = problem;
  return records;
}

}  // namespace indexpool::verify
