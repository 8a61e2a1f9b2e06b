// Traffic of the kernels that make pool weights from groups of vectors, warp by warp.
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/group_access.hpp"
#include "indexpool/kernels/policy/issued.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

// 10 fused multiply-adds, a subtraction, two products.
constexpr double exponential_flop = 23;

// What the dot products of one row with every vector of each group move: records, rows, vectors,
// weights.
struct DotTraffic {
  const GroupedVectors& grouped;
  const float* pool_weights;
  std::int64_t sums;  // reductions per vector

  Traffic of(const WarpGroups& warp) const {
    Traffic traffic;
    add_loads(traffic, warp.elements(grouped.groups, sizeof(VectorGroup)));
    add_loads(traffic, warp.vectors(row()));
    add_stores(traffic,
               warp.words(pool_weights, WordRow::of_group, WordPattern::each_its_own, true));
    traffic.shuffles += sums * grouped.index_kpool * GroupedAccess{grouped}.tree_steps();
    return traffic;
  }
  GlobalAccess row() const { return row_access(grouped.storage, grouped.head_dim); }
};

Work work_of(const GroupedVectors& grouped, const Traffic& traffic, std::int64_t sums) {
  const GroupedAccess access{grouped};
  const std::int64_t row = row_access(grouped.storage, grouped.head_dim).bytes;
  const std::int64_t words = grouped.group_count * grouped.index_kpool * 4;
  const std::int64_t groups_per_block = policy_threads / access.lanes();
  const int pieces = pieces_of(grouped.head_dim);
  Work work;
  work.traffic = traffic;
  work.unique_read =
      Bytes(grouped.group_count * std::int64_t{sizeof(VectorGroup)} + access.distinct_rows() * row);
  work.unique_write = Bytes(words);
  work.f32_flop = Flop(static_cast<double>(2 * sums * access.present_vectors()) *
                       static_cast<double>(grouped.head_dim));
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(grouped.group_count, groups_per_block);
  work.blocks_per_sm = dot_blocks_per_sm(pieces);
  work.in_flight_per_block = Bytes(groups_per_block * vectors_in_flight(pieces) * row);
  return work;
}

}  // namespace

Work declared_additive_weights(const AdditiveWeightsArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  const GroupedAccess access{grouped};
  const DotTraffic dots = {grouped, args.pool_weights, 2};
  const Traffic traffic =
      over_warps(grouped, access.per_warp(), [&](std::int64_t first, std::int64_t end) {
        const WarpGroups warp(access, first, end);
        Traffic one = dots.of(warp);
        add_loads(one, (end - first) * dots.row());
        for (const float* terms : {args.distances, args.ages})
          add_loads(one, warp.words(terms, WordRow::of_group, WordPattern::each_its_own, false));
        one.shuffles += access.tree_steps();
        return one;
      });
  Work work = work_of(grouped, traffic, 2);
  work.unique_read.value += grouped.group_count * dots.row().bytes + 8 * access.present_vectors();
  work.f32_flop.value += static_cast<double>(access.present_vectors()) * 2 * exponential_flop;
  return with_issue(work, additive_weights_issue(args));
}

Work declared_tfidf_weights(const TfidfWeightsArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  const GroupedAccess access{grouped};
  const DotTraffic dots = {grouped, args.pool_weights, 2};
  using enum WordPattern;
  const Traffic traffic =
      over_warps(grouped, access.per_warp(), [&](std::int64_t first, std::int64_t end) {
        const WarpGroups warp(access, first, end);
        Traffic one = dots.of(warp);
        add_loads(one, (end - first) * dots.row());
        add_loads(one, warp.words(args.accesses, WordRow::of_group, together, false));
        add_loads(one, warp.words(args.accesses, WordRow::of_group, each_its_own, false));
        add_loads(one, warp.words(args.groups_accessed, WordRow::of_group, each_its_own, false));
        add_loads(one, warp.words(args.position_terms, WordRow::shared, each_its_own, false));
        one.shuffles += access.tree_steps();
        return one;
      });
  Work work = work_of(grouped, traffic, 2);
  work.unique_read.value += grouped.group_count * dots.row().bytes + 8 * access.present_vectors() +
                            (grouped.group_count > 0 ? 4 * grouped.index_kpool : 0);
  work.f32_flop.value += static_cast<double>(access.present_vectors()) * exponential_flop;
  return with_issue(work, tfidf_weights_issue(args));
}

Work declared_gated_weights(const GatedWeightsArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  const GroupedAccess access{grouped};
  const DotTraffic dots = {grouped, args.pool_weights, 1};
  const Traffic traffic =
      over_warps(grouped, access.per_warp(), [&](std::int64_t first, std::int64_t end) {
        const WarpGroups warp(access, first, end);
        Traffic one = dots.of(warp);
        WarpInstruction biases;
        std::int64_t rows = 0;  // of the gate: groups of a head read the same
        for (std::int64_t g = first; g < end; ++g) {
          biases.touch(address_of(args.gate_bias) + 4 * (g % args.heads), 4);
          rows += g - first < args.heads ? 1 : 0;
        }
        add_loads(one, biases.take());
        add_loads(one, rows * dots.row());
        add_loads(one, warp.elements(args.hidden_gates, 4));
        return one;
      });
  Work work = work_of(grouped, traffic, 1);
  const std::int64_t heads = args.heads < grouped.group_count ? args.heads : grouped.group_count;
  work.unique_read.value += 4 * grouped.group_count + heads * (4 + dots.row().bytes);
  work.f32_flop.value += static_cast<double>(access.present_vectors()) * exponential_flop;
  return with_issue(work, gated_weights_issue(args));
}

// A warp has 128 channels: one of the D / 128 parts of a group, or 128 / D groups.
Work declared_channel_weights(const ChannelWeightsArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  const GroupedAccess access{grouped};
  const std::int64_t warp_channels = std::int64_t{32} * quad_channels, head_dim = grouped.head_dim;
  const std::int64_t per_warp = head_dim < warp_channels ? warp_channels / head_dim : 1;
  const std::int64_t warps_per_group = head_dim < warp_channels ? 1 : head_dim / warp_channels;
  const std::int64_t channels = head_dim / warps_per_group;
  const auto stretch = [&](std::int64_t bytes) {
    return GlobalAccess{channels * bytes, channels * bytes / sector_bytes};
  };
  const std::int64_t score_bytes = info(grouped.storage).bytes, m = grouped.index_kpool;
  Traffic traffic = over_warps(grouped, per_warp, [&](std::int64_t first, std::int64_t end) {
    const WarpGroups warp(access, first, end);
    Traffic part, one;
    add_loads(part, warp.elements(grouped.groups, sizeof(VectorGroup)));
    add_loads(part, warp.vectors(stretch(score_bytes)));
    // Biases: groups that read the same row at the same time read it once.
    add_loads(part, (warp.words(nullptr, WordRow::shared, WordPattern::together, false).bytes / 4) *
                        stretch(4));
    add_stores(part, (end - first) * m * stretch(4));
    for (std::int64_t i = 0; i < warps_per_group; ++i) one += part;
    return one;
  });
  const std::int64_t rows = access.present_vectors();
  Work work;
  work.traffic = traffic;
  work.unique_read = Bytes(grouped.group_count * std::int64_t{sizeof(VectorGroup)} +
                           access.distinct_rows() * head_dim * score_bytes +
                           (grouped.group_count > 0 ? m * head_dim * 4 : 0));
  work.unique_write = Bytes(grouped.group_count * m * head_dim * 4);
  work.f32_flop =
      Flop(static_cast<double>(rows * head_dim) * (exponential_flop + 4));  // bias, shift, sum, /
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(grouped.group_count * (head_dim / quad_channels), policy_threads);
  work.blocks_per_sm = channel_blocks_per_sm(channel_capacity(grouped.index_kpool));
  work.in_flight_per_block = Bytes(policy_threads * m * quad_channels * (score_bytes + 4));
  return with_issue(work, channel_weights_issue(args));
}

}  // namespace indexpool::kernels
