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
};
std::vector<Way> ways(const Options& options);  // all but the first run
std::unique_ptr<kernels::Target> make_target(const Options& options, sim::simt::LaneOrder order,
                                             bool count);

// A named buffer of an output, as bytes.
using Buffers = std::vector<std::pair<std::string, std::span<const std::byte>>>;

template <class Output>
struct Executed {
  Output first;
  Environment environment;
  std::vector<Check> checks;  // "rerun" and "lane_order"
};

// `run(context)` gives an Output; `buffers(output)` what must be equal between runs.
template <class Run, class GetBuffers>
auto execute(const Options& options, const Run& run, const GetBuffers& buffers,
             std::size_t choice = 0) {
  using Output = decltype(run(std::declval<StageContext&>()));
  const Lookup lookup = make_lookup(options, choice);
  const auto once = [&](sim::simt::LaneOrder order, bool count, Environment* environment) {
    const auto target = make_target(options, order, count);
    if (environment != nullptr) *environment = target->environment();
    StageContext context{*target, lookup, false};
    return run(context);
  };
  Environment environment;
  Executed<Output> executed{once(sim::simt::LaneOrder::forward, true, &environment), {}, {}};
  executed.environment = std::move(environment);
  executed.environment.target = options.target;
  const Buffers expected = buffers(executed.first);
  for (const Way& way : ways(options)) {
    const Output again = once(way.order, false, nullptr);
    const Buffers found = buffers(again);
    Check check = Tally(way.check).finish();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      check = merge(check, check_same_bytes(way.check, expected[i].first, expected[i].second,
                                            found[i].second));
    }
    if (!executed.checks.empty() && executed.checks.back().name == way.check) {
      executed.checks.back() = merge(executed.checks.back(), check);
    } else {
      executed.checks.push_back(check);
    }
  }
  return executed;
}

}  // namespace indexpool::verify
