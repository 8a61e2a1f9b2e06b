// Runs one mutant, or "unmutated" kernels, on small problems, once, so that the thread sanitizer
// can look on. Exit code 0 whatever the verdict: the sanitizer sets its own.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "indexpool/verify/mutants/module.hpp"
#include "indexpool/verify/mutants/mutant.hpp"
#include "indexpool/verify/verify.hpp"

namespace {

using namespace indexpool;

void run(const Problem& problem, const verify::Options& options) {
  for (const Record& record : verify::verify_problem(problem, options)) {
    std::printf("%s %s %s\n", record.op.c_str(), record.implementation.c_str(),
                std::string(to_string(record.verdict.status)).c_str());
  }
}

bool is_shipped(const Problem& problem) {
  return problem.policy == shipped_policy && problem.attention.empty();
}

// The set's own problems, or those of the shipped indexer in their mode: one pool of two is
// selected; then ten of ten, in more columns than one warp reads.
std::vector<Problem> small_problems(const Suite& set) {
  if (!is_shipped(set.problems.front())) return set.problems;
  std::vector<Problem> problems;
  for (const auto& [topk, tokens] : {std::pair{4, 11}, std::pair{40, 43}}) {
    Problem& problem = problems.emplace_back();
    problem.mode = set.problems.front().mode;
    problem.indexer = {3, 32, topk, 4, true};
    problem.lengths = {tokens};
  }
  return problems;
}

void run_all(const std::vector<std::string>& sets, const verify::Options& options) {
  for (const std::string& set : sets) {
    for (const Problem& problem : small_problems(verify::mutant_problems(set)))
      run(problem, options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MUTANT|unmutated\n", argv[0]);
    return 2;
  }
  verify::Options options;
  options.all_lane_orders = false;
  if (std::string(argv[1]) == "unmutated") {
    run_all({"logits_fp8", "logits_f32", "policy_gates", "attention_hybrid", "attention_composite"},
            options);
    return 0;
  }
  const auto table = verify::mutant_table();
  const verify::Mutant& mutant = verify::find_mutant(table, argv[1]);
  const verify::MutantModule module(INDEXPOOL_MUTANTS_MODULE);
  const kernels::Kernel& kernel = *module.code(mutant.id).kernel;
  options.target = std::string(kernel.target);
  options.extra_kernels = {&kernel, 1};
  run_all({mutant.problems}, options);
  return 0;
}
