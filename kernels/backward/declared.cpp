// Traffic of the kernels of groups, warp by warp.
#include "indexpool/kernels/backward/declared.hpp"

#include <algorithm>

#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/backward/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

// Of a launch with a group in neighbouring lanes.
struct GroupWork {
  const GroupedVectors& grouped;
  GroupedAccess access{grouped};
  GlobalAccess row = row_access(grouped.storage, grouped.head_dim);
  GlobalAccess f32_row = row_access(DType::f32, grouped.head_dim);

  std::int64_t m() const { return grouped.index_kpool; }
  std::int64_t present(std::int64_t first, std::int64_t end) const {
    std::int64_t count = 0;
    for (std::int64_t g = first; g < end; ++g) count += access.present(g);
    return count;
  }
  template <class F>
  Work of(F&& f) const {
    Work work;
    work.traffic =
        over_warps(grouped, access.per_warp(), [&](std::int64_t first, std::int64_t end) {
          Traffic one;
          const WarpGroups warp(access, first, end);
          add_loads(one, warp.elements(grouped.groups, sizeof(VectorGroup)));
          f(warp, first, end, one);
          return one;
        });
    const std::int64_t per_block = policy_threads / access.lanes();
    const std::int64_t in_flight = vectors_in_flight(pieces_of(grouped.head_dim));
    work.threads_per_block = policy_threads;
    work.blocks = blocks_for(grouped.group_count, per_block);
    work.blocks_per_sm = pool_backward_blocks_per_sm(pieces_of(grouped.head_dim));
    work.in_flight_per_block = Bytes(per_block * in_flight * row.bytes);
    work.unique_read = Bytes(grouped.group_count * std::int64_t{sizeof(VectorGroup)} +
                             access.distinct_rows() * row.bytes);
    return work;
  }
  // Floating-point operations, so many for each channel of each present vector.
  Flop flop(double each) const {
    return Flop(each * static_cast<double>(grouped.head_dim) *
                static_cast<double>(access.present_vectors()));
  }
};

}  // namespace

Work declared_pool_backward(const PoolBackwardArgs& args) {
  const GroupWork groups{args.grouped};
  const std::int64_t m = groups.m(), count = args.grouped.group_count;
  Work work = groups.of([&](const WarpGroups& warp, std::int64_t first, std::int64_t end,
                            Traffic& traffic) {
    const GlobalAccess words =
        warp.words(args.pool_weights, WordRow::of_set, WordPattern::together, false);
    add_loads(traffic, (end - first) * groups.f32_row);
    add_loads(traffic, warp.vectors(groups.row));
    add_loads(traffic, (args.divide ? 2 : 1) * words);
    add_stores(traffic, (end - first) * m * groups.f32_row);
    add_stores(traffic,
               warp.words(args.grad_weights, WordRow::of_group, WordPattern::each_its_own, true));
    traffic.shuffles = m * groups.access.tree_steps();
  });
  work.unique_read.value += count * groups.f32_row.bytes + groups.access.distinct_sets() * m * 4;
  work.unique_write = Bytes(count * m * (groups.f32_row.bytes + 4));
  work.f32_flop = groups.flop(3);
  return with_issue(work, pool_backward_issue(args));
}

Work declared_channel_pool_backward(const ChannelPoolBackwardArgs& args) {
  const GroupWork groups{args.grouped};
  const std::int64_t m = groups.m(), count = args.grouped.group_count;
  const bool normed = args.norm_weight != nullptr;
  const std::int64_t passes = normed ? 2 : 1;
  Work work = groups.of(
      [&](const WarpGroups& warp, std::int64_t first, std::int64_t end, Traffic& traffic) {
        add_loads(traffic, (end - first) * groups.f32_row);
        add_loads(traffic, passes * warp.vectors(groups.row));
        add_loads(traffic, passes * groups.present(first, end) * groups.f32_row);
        add_stores(traffic, 2 * (end - first) * m * groups.f32_row);
        if (!normed) return;
        add_loads(traffic, groups.f32_row);
        add_loads(traffic, (end - first) * row_access(DType::f32, args.rope_dims));
        add_stores(traffic, (end - first) * groups.f32_row);
        traffic.shuffles = 2 * groups.access.tree_steps();
      });
  work.unique_read.value += (count + groups.access.present_vectors()) * groups.f32_row.bytes;
  work.unique_write = Bytes((2 * m + (normed ? 1 : 0)) * count * groups.f32_row.bytes);
  if (normed && count > 0)
    work.unique_read.value += groups.f32_row.bytes + count * std::int64_t{args.rope_dims} * 4;
  work.f32_flop = groups.flop(normed ? 4 : 2);
  return with_issue(work, channel_pool_backward_issue(args));
}

Work declared_gate_backward(const GateBackwardArgs& args) {
  const GroupWork groups{args.grouped};
  const std::int64_t m = groups.m(), count = args.grouped.group_count;
  const std::int64_t pieces = pieces_of(args.grouped.head_dim);
  Work work = groups.of(
      [&](const WarpGroups& warp, std::int64_t first, std::int64_t end, Traffic& traffic) {
        const auto words = [&](const float* base) {
          return pieces * warp.words(base, WordRow::of_group, WordPattern::together, false);
        };
        add_loads(traffic, std::min<std::int64_t>(args.heads, end - first) * groups.row);
        add_loads(traffic, warp.vectors(groups.row));
        add_loads(traffic, groups.present(first, end) * groups.f32_row);
        add_loads(traffic, words(args.pool_weights));
        add_loads(traffic, words(args.grad_weights));
        add_stores(traffic, (end - first) * (m + 1) * groups.f32_row);
        add_stores(traffic, warp.elements(args.grad_hidden_gates, 4));
      });
  const std::int64_t present = groups.access.present_vectors();
  work.blocks_per_sm = gate_backward_blocks_per_sm;
  work.in_flight_per_block = Bytes(std::int64_t{policy_threads} * slots_in_flight *
                                   channels_per_lane * (info(args.grouped.storage).bytes + 4));
  work.unique_read.value += present * (groups.f32_row.bytes + 8) +
                            std::min<std::int64_t>(args.heads, count) * groups.row.bytes;
  work.unique_write = Bytes(count * ((m + 1) * groups.f32_row.bytes + 4));
  work.f32_flop = groups.flop(4);
  return with_issue(work, gate_backward_issue(args));
}

Work declared_cosine_backward(const CosineBackwardArgs& args) {
  const GroupWork groups{args.grouped};
  const std::int64_t m = groups.m(), count = args.grouped.group_count;
  using enum WordPattern;
  Work work = groups.of(
      [&](const WarpGroups& warp, std::int64_t first, std::int64_t end, Traffic& traffic) {
        add_loads(traffic, (end - first) * groups.row);
        add_loads(traffic, warp.vectors(groups.row));
        add_loads(traffic, warp.words(args.grad_weights, WordRow::of_group, together, false));
        add_loads(traffic, groups.present(first, end) * groups.f32_row);
        add_stores(traffic, (end - first) * (m + 1) * groups.f32_row);
        add_stores(traffic, warp.words(args.cosines, WordRow::of_group, each_its_own, true));
        traffic.shuffles = (2 * m + 1) * groups.access.tree_steps();
      });
  work.blocks_per_sm = cosine_backward_blocks_per_sm(pieces_of(args.grouped.head_dim));
  work.unique_read.value +=
      count * groups.row.bytes + groups.access.present_vectors() * (groups.f32_row.bytes + 4);
  work.unique_write = Bytes(count * ((m + 1) * groups.f32_row.bytes + 4 * m));
  work.f32_flop = groups.flop(10);  // two dots and three multiply-adds
  return with_issue(work, cosine_backward_issue(args));
}

}  // namespace indexpool::kernels
