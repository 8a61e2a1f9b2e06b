// Looks at some of what a launch at full size wrote: the first and the last, what lies beyond 2^31
// bytes, and a few others, against the reference within its bounds.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/measure/place.hpp"

namespace indexpool::verify::timing {

struct SampleOptions {
  std::uint64_t seed = 1;
  std::int64_t samples = 12;             // pools, rows, requests; all of them where there are fewer
  reference::Accumulation accumulation;  // of the kernel that made the logits
};
// One launch of placed.args has run on `target`.
std::vector<Check> check_samples(kernels::Target& target, const Placed& placed,
                                 const SampleOptions& options);

// Ascending and distinct indices below `count`: the first, the last, those around 2^31 and 2^32
// bytes where items have `item_bytes`, and others up to `wanted`.
std::vector<std::int64_t> sampled(std::int64_t count, std::int64_t item_bytes, std::int64_t wanted,
                                  std::uint64_t seed);

// `count` values of the target's memory.
template <class T>
std::vector<T> downloaded(kernels::Target& target, const T* from, std::int64_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(count));
  target.download(values.data(), reinterpret_cast<const std::byte*>(from),
                  count * std::int64_t{sizeof(T)});
  return values;
}

// By operation.
std::vector<Check> check_pools(kernels::Target& target, const Placed& placed,
                               const kernels::PoolArgs& args, const SampleOptions& options);
std::vector<Check> check_appended(kernels::Target& target, const Placed& placed,
                                  const kernels::AppendArgs& args, const SampleOptions& options);
std::vector<Check> check_tails(kernels::Target& target, const Placed& placed,
                               const kernels::SeedTailArgs& args, const SampleOptions& options);
std::vector<Check> check_query_rows(kernels::Target& target, const kernels::QuantizeQueryArgs& args,
                                    const SampleOptions& options);
std::vector<Check> check_logits(kernels::Target& target, const Placed& placed,
                                const kernels::LogitsArgs& args, const SampleOptions& options);
std::vector<Check> check_selections(kernels::Target& target, const Placed& placed,
                                    const kernels::TopkArgs& args, const SampleOptions& options);

}  // namespace indexpool::verify::timing
