// Traffic of the element-wise attention kernels: a warp's 32 neighbouring threads, by where its
// first one lies among the heads, since what heads share repeats.
#include <algorithm>
#include <map>

#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t warp_lanes = 32, word_bytes = 4;

// Sum of f(first, count) -> Traffic over warps of `items` threads; f depends on first % period and
// count alone.
template <class F>
Traffic over_threads(std::int64_t items, std::int64_t period, F&& f) {
  std::map<std::int64_t, Traffic> seen;
  Traffic sum;
  for (std::int64_t first = 0; first < items; first += warp_lanes) {
    const std::int64_t count = std::min(warp_lanes, items - first);
    if (count < warp_lanes) {
      sum += f(first, count);
      continue;
    }
    const auto [at, fresh] = seen.try_emplace(first % period);
    if (fresh) at->second = f(first, count);
    sum += at->second;
  }
  return sum;
}

// Eight f32 of each of `count` threads: two instructions, each of which touches every sector.
GlobalAccess eight_words(std::int64_t count) {
  const std::int64_t bytes = count * channels_per_lane * word_bytes;
  return {bytes, 2 * bytes / sector_bytes};
}

void set_elementwise(Work& work, std::int64_t threads) {
  work.unique_write = work.traffic.global_store;
  work.blocks = blocks_for(threads, elementwise_threads);
  work.threads_per_block = elementwise_threads;
  work.blocks_per_sm = elementwise_blocks_per_sm;
}

}  // namespace

Work declared_safe_gate(const SafeGateArgs& args) {
  const std::int64_t per_head = args.key_dim / channels_per_lane, heads = args.heads;
  const std::int64_t period = heads * per_head, pieces = args.rows * period;
  const std::int64_t element = info(args.storage).bytes;
  Work work;
  work.traffic = over_threads(pieces, period, [&](std::int64_t first, std::int64_t count) {
    Traffic traffic;
    if (args.storage == DType::f32) {
      add_loads(traffic, eight_words(count));
    } else {
      const std::int64_t bytes = count * channels_per_lane * element;
      add_loads(traffic, {bytes, sectors_of(first * channels_per_lane * element, bytes)});
    }
    WarpInstruction steepness, halves[2];
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t of_heads = i % period;
      steepness.touch(of_heads / per_head * word_bytes, word_bytes);
      for (int half = 0; half < 2; ++half)
        halves[half].touch(of_heads * 32 + std::int64_t{half} * 16, 16);
    }
    for (WarpInstruction* instruction : {&steepness, &halves[0], &halves[1]})
      add_loads(traffic, instruction->take());
    add_stores(traffic, eight_words(count));
    return traffic;
  });
  set_elementwise(work, pieces);
  work.unique_read = Bytes(pieces * channels_per_lane * element +
                           (args.rows > 0 ? heads * (args.key_dim + 1) * word_bytes : 0));
  // Per channel an exponential (23), a quotient, two sums and two products; one per thread.
  work.f32_flop = Flop(static_cast<double>(pieces) * (channels_per_lane * (23 + 5) + 23));
  work.in_flight_per_block =
      Bytes((element + word_bytes) * elementwise_threads * channels_per_lane);
  issue_safe_gate(args, work);
  return work;
}

Work declared_gate_fusion(const GateFusionArgs& args) {
  const std::int64_t per_head = args.value_dim / fusion_channels;
  const std::int64_t gates = args.rows * args.heads, quads = gates * per_head;
  constexpr std::int64_t quad_bytes = fusion_channels * word_bytes;
  // Gates of a sector come back together with the heads that share a warp.
  const std::int64_t period = per_head * (sector_bytes / word_bytes);
  Work work;
  work.traffic = over_threads(quads, period, [&](std::int64_t first, std::int64_t count) {
    Traffic traffic;
    WarpInstruction gate;
    for (std::int64_t i = first; i < first + count; ++i)
      gate.touch(i / per_head * word_bytes, word_bytes);
    add_loads(traffic, gate.take());
    const std::int64_t bytes = count * quad_bytes;
    const GlobalAccess access{bytes, sectors_of(first * quad_bytes, bytes)};
    add_loads(traffic, 2 * access);
    add_stores(traffic, access);
    return traffic;
  });
  set_elementwise(work, quads);
  work.unique_read = Bytes(gates * word_bytes + 2 * quads * quad_bytes);
  // Per thread a sigmoid (25) and a difference; per channel two products and a sum.
  work.f32_flop = Flop(static_cast<double>(quads) * (26 + 3.0 * fusion_channels));
  work.in_flight_per_block = Bytes(quad_bytes * 2 * elementwise_threads);
  issue_gate_fusion(args, work);
  return work;
}

}  // namespace indexpool::kernels
