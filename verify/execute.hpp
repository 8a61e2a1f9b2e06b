// Runs an operation as often as its verdict needs: twice the same way, and on the executor in other
// orders of the lanes.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// No kernel takes the problem; what() says why.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The `choice`-th kernel that takes some arguments: of options.target, or (for an operation that a
// mutant leaves alone) the first of simt. The lookup throws Unsupported when there is none.
Lookup make_lookup(const Options& options, std::size_t choice = 0);
// An upper bound of the kernels one operation has on the target.
std::size_t kernels_of_an_operation(const Options& options);

// A way to run: which check its bytes feed, and in which order the lanes go.
struct Way {
  std::string check;
  sim::simt::LaneOrder order = sim::simt::LaneOrder::forward;
  bool executor = false;  // on the executor, whatever the target
  sim::simt::MatrixModel matrix = sim::simt::MatrixModel::sm80;
};
std::vector<Way> ways(const Options& options);  // all but the first run
std::unique_ptr<kernels::Target> make_target(const Options& options, const Way& way, bool count);

// A named buffer of an output, as bytes. Of every `words` words of 4 bytes the first `floats` are
// binary32.
struct Buffer {
  std::string name;
  std::span<const std::byte> bytes;
  std::size_t floats = 0, words = 1;
};
using Buffers = std::vector<Buffer>;
// The bytes with one NaN for all: which of them comes out of an operation is the machine's choice.
std::vector<std::byte> with_one_nan(const Buffer& buffer);

template <class Output>
struct Executed {
  Output first;
  Environment environment;
  std::vector<Check> checks;  // "rerun", "lane_order", "executor"
};

// Whether a GPU must give the executor's bytes: on any device where all arithmetic is explicit;
// with matrix cores only where the executor's model of them was measured (compute capability 9.0).
enum class OnGpu { same_bytes, matrix_cores };

// `run(context)` gives an Output; `buffers(output)` what must be equal between runs.
template <class Run, class GetBuffers>
auto execute(const Options& options, const Run& run, const GetBuffers& buffers, OnGpu on_gpu,
             std::size_t choice = 0) {
  using Output = decltype(run(std::declval<StageContext&>()));
  int capability = 0;
  Environment environment;
  const auto once = [&](const Options& where, const Way& way, bool first) {
    const auto target = make_target(where, way, first);
    if (first) {
      environment = target->environment();
      capability = target->compute_capability();
    }
    StageContext context{*target, make_lookup(where, choice), false, where.planner};
    return run(context);
  };
  Executed<Output> executed{once(options, {}, true), {}, {}};
  executed.environment = std::move(environment);
  executed.environment.target = options.target;
  const Buffers expected = buffers(executed.first);
  std::vector<Way> others = ways(options);
  if (options.target == "cuda" && (on_gpu == OnGpu::same_bytes || capability == 90)) {
    others.push_back(
        {"executor", sim::simt::LaneOrder::forward, true, sim::simt::MatrixModel::sm90});
  }
  Options on_executor = options;
  on_executor.target = "simt";
  for (const Way& way : others) {
    const Output again = once(way.executor ? on_executor : options, way, false);
    const Buffers found = buffers(again);
    Check check = Tally(way.check).finish();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto same = [&](std::span<const std::byte> a, std::span<const std::byte> b) {
        return check_same_bytes(way.check, expected[i].name, a, b);
      };
      check = merge(check, way.executor ? same(with_one_nan(expected[i]), with_one_nan(found[i]))
                                        : same(expected[i].bytes, found[i].bytes));
    }
    if (!executed.checks.empty() && executed.checks.back().name == way.check) {
      executed.checks.back() = merge(executed.checks.back(), check);
    } else {
      executed.checks.push_back(check);
    }
  }
  return executed;
}

// Runs once more with the clock on, when options ask for it: timings of what passed.
template <class Run>
auto measure(const Options& options, const Run& run, std::size_t choice = 0) {
  const auto target = make_target(options, Way{}, false);
  StageContext context{*target, make_lookup(options, choice), true, options.planner};
  return run(context);
}
inline bool wants_timing(const Options& options, const Verdict& verdict) {
  return options.measure &&
         (verdict.status == Status::passed || verdict.status == Status::marginal);
}

}  // namespace indexpool::verify
