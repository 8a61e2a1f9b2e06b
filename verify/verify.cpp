#include "indexpool/verify/verify.hpp"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/attention/attention.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/operations.hpp"
#include "indexpool/verify/policy/policy.hpp"

namespace indexpool::verify {
namespace {

// One copy of the largest buffers; a run holds several.
double largest_buffers(const IndexerInputs& inputs, std::int64_t states_per_page) {
  const IndexerConfig& config = inputs.config;
  const auto page = static_cast<double>(states_per_page) *
                    static_cast<double>(config.index_head_dim * info(inputs.mode.cache).bytes + 4);
  double pages = 3, pools = 0;
  for (const Sequence& sequence : inputs.sequences) {
    const std::int64_t states = sequence.length / config.index_kpool;
    pages += static_cast<double>((states + states_per_page - 1) / states_per_page);
    pools = std::max(pools, static_cast<double>(states));
  }
  const double row_bytes = 4 * (pools + static_cast<double>(config.selection_width()));
  return page * pages + static_cast<double>(inputs.rows()) * row_bytes;
}

// Refused before anything runs: the system would end the process without a word.
void require_memory(const Case& test_case, const Options& options) {
  constexpr double copies = 4, gib = 0x1p30;
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  const double needed = copies * largest_buffers(test_case.inputs, options.states_per_page);
  if (needed < machine) return;
  throw ConfigError(fmt::format(
      "{}: cache, logits and selection need about {:.1f} GiB in {} copies, and this machine has "
      "{:.1f} GiB; choose fewer tokens, a smaller page or a smaller topk",
      test_case.name, needed / gib, copies, machine / gib));
}

std::vector<Record> run(const Case& test_case, const Options& options, bool about_ties) {
  require_memory(test_case, options);
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
  if (!problem.attention.empty()) return attention::verify_attention(problem, own);
  if (problem.policy != shipped_policy) return policy::verify_policy(problem, own);
  std::vector<Record> records = run(make_case(problem), own, find_fill(problem.fill).about_ties);
  for (Record& record : records) record.problem = problem;
  return records;
}

}  // namespace indexpool::verify
