// Runs one target, a mutant or simt, on a small problem, once, so that the thread sanitizer can
// look on. Exit code 0 whatever the verdict: the sanitizer sets its own.
#include <cstdio>
#include <string>

#include "indexpool/verify/verify.hpp"

#include "mutant.hpp"

int main(int argc, char** argv) {
  using namespace indexpool;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s TARGET\n", argv[0]);
    return 2;
  }
  verify::Options options;
  options.target = argv[1];
  options.all_lane_orders = false;
  if (options.target != "simt") options.extra_kernels = verify::mutant_kernels();
  for (const char* mode : {"vllm_fp8", "hf_f32"}) {
    Problem problem;
    problem.mode = mode;
    problem.indexer = {3, 32, 4, 4, true};
    problem.lengths = {11};
    for (const Record& record : verify::verify_problem(problem, options)) {
      std::printf("%s %s %s\n", record.op.c_str(), record.implementation.c_str(),
                  std::string(to_string(record.verdict.status)).c_str());
    }
  }
  return 0;
}
