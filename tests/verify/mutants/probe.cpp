// Runs one mutant, or "unmutated" kernels, on small problems, once, so that the thread sanitizer
// can look on. Exit code 0 whatever the verdict: the sanitizer sets its own.
#include <cstdio>
#include <string>
#include <utility>

#include "indexpool/verify/mutants/module.hpp"
#include "indexpool/verify/mutants/mutant.hpp"
#include "indexpool/verify/verify.hpp"

namespace {

using namespace indexpool;

// One pool of two is selected; then ten of ten, in more columns than one warp reads.
void run(const std::string& mode, const verify::Options& options) {
  for (const auto& [topk, tokens] : {std::pair{4, 11}, std::pair{40, 43}}) {
    Problem problem;
    problem.mode = mode;
    problem.indexer = {3, 32, topk, 4, true};
    problem.lengths = {tokens};
    for (const Record& record : verify::verify_problem(problem, options)) {
      std::printf("%s %s %s\n", record.op.c_str(), record.implementation.c_str(),
                  std::string(to_string(record.verdict.status)).c_str());
    }
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
    for (const char* mode : {"vllm_fp8", "hf_f32"}) run(mode, options);
    return 0;
  }
  const auto table = verify::mutant_table();
  const verify::Mutant& mutant = verify::find_mutant(table, argv[1]);
  const verify::MutantModule module(INDEXPOOL_MUTANTS_MODULE);
  const kernels::Kernel& kernel = *module.code(mutant.id).kernel;
  options.target = std::string(kernel.target);
  options.extra_kernels = {&kernel, 1};
  run(verify::mutant_problems(mutant.problems).problems.front().mode, options);
  return 0;
}
