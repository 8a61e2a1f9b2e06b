#include "indexpool/verify/measure/sample.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "indexpool/verify/random.hpp"

namespace indexpool::verify::timing {
namespace {

struct ByOperation {
  kernels::Target& target;
  const Placed& placed;
  const SampleOptions& options;

  std::vector<Check> operator()(const kernels::PoolArgs& args) const {
    return check_pools(target, placed, args, options);
  }
  std::vector<Check> operator()(const kernels::SeedTailArgs& args) const {
    return check_tails(target, placed, args, options);
  }
  std::vector<Check> operator()(const kernels::AppendArgs& args) const {
    return check_appended(target, placed, args, options);
  }
  std::vector<Check> operator()(const kernels::QuantizeQueryArgs& args) const {
    return check_query_rows(target, args, options);
  }
  std::vector<Check> operator()(const kernels::LogitsArgs& args) const {
    return check_logits(target, placed, args, options);
  }
  std::vector<Check> operator()(const kernels::TopkArgs& args) const {
    return check_selections(target, placed, args, options);
  }
  // No grid holds them.
  std::vector<Check> operator()(const kernels::PolicyArgs&) const { return {}; }
  std::vector<Check> operator()(const kernels::AttentionArgs&) const { return {}; }
  std::vector<Check> operator()(const kernels::BackwardArgs&) const { return {}; }
};

}  // namespace

std::vector<std::int64_t> sampled(std::int64_t count, std::int64_t item_bytes, std::int64_t wanted,
                                  std::uint64_t seed) {
  std::set<std::int64_t> indices;
  const auto add = [&](std::int64_t index) {
    if (index >= 0 && index < count) indices.insert(index);
  };
  add(0);
  add(count - 1);
  for (const int power : {31, 32}) {
    const std::int64_t at = (std::int64_t{1} << power) / item_bytes;
    add(at);      // the item in which the offset wraps
    add(at + 1);  // the first one beyond
  }
  constexpr std::uint64_t stream = 700;
  const Random random(seed, stream);
  const std::int64_t enough = std::min(count, wanted);
  for (std::int64_t i = 0; std::ssize(indices) < enough; ++i) add(random.integer(i, 0, count - 1));
  return {indices.begin(), indices.end()};
}

std::vector<Check> check_samples(kernels::Target& target, const Placed& placed,
                                 const SampleOptions& options) {
  return std::visit(ByOperation{target, placed, options}, placed.args);
}

}  // namespace indexpool::verify::timing
