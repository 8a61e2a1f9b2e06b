// The reference and the side-by-side runner on one generated case.
#include <benchmark/benchmark.h>

#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/verify.hpp"

namespace {

indexpool::Problem problem_of(std::int64_t tokens) {
  indexpool::Problem problem;
  problem.lengths = {tokens};
  problem.indexer.index_n_heads = 8;
  return problem;
}

void BM_ReferencePool(benchmark::State& state) {
  const auto test_case = indexpool::verify::make_case(problem_of(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(indexpool::reference::pool(test_case.inputs));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ReferencePool)->ArgName("tokens")->Arg(256)->Unit(benchmark::kMillisecond);

void BM_VerifyProblem(benchmark::State& state) {
  const auto problem = problem_of(state.range(0));
  const auto records = indexpool::verify::verify_problem(problem, {});
  if (indexpool::overall_status(records) != indexpool::Status::passed)
    state.SkipWithError("the problem does not pass: not timed");
  for (auto _ : state) benchmark::DoNotOptimize(indexpool::verify::verify_problem(problem, {}));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_VerifyProblem)->ArgName("tokens")->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
