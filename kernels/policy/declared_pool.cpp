// Traffic of weighted_pool, warp by warp.
#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/group_access.hpp"
#include "indexpool/kernels/policy/issued.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

class PoolAccess {
 public:
  explicit PoolAccess(const WeightedPoolArgs& args)
      : args_(args), access_{args.grouped}, f32_row_(row_access(DType::f32, head_dim())) {}

  std::int64_t head_dim() const { return args_.grouped.head_dim; }
  bool quantised() const { return args_.mode.quantised(); }
  bool normed() const { return args_.norm_weight != nullptr; }
  GlobalAccess row() const { return row_access(args_.grouped.storage, head_dim()); }

  Traffic warp(std::int64_t first, std::int64_t end) const {
    const WarpGroups groups(access_, first, end);
    Traffic traffic;
    add_loads(traffic, groups.elements(args_.grouped.groups, sizeof(VectorGroup)));
    add_loads(traffic, groups.vectors(row()));
    add_weights(groups, first, end, traffic);
    if (normed()) {
      add_loads(traffic, f32_row_);
      add_loads(traffic, (end - first) * row_access(DType::f32, args_.rope_dims));
    }
    add_stores(traffic, (end - first) * stored_row());
    if (quantised()) add_stores(traffic, groups.elements(args_.scales, 4));
    if (args_.checksums != nullptr)
      add_stores(traffic, groups.elements(args_.checksums, sizeof(PoolChecksum)));
    if (args_.fallbacks != nullptr) add_stores(traffic, groups.elements(args_.fallbacks, 4));
    traffic.shuffles = reductions() * access_.tree_steps();
    return traffic;
  }

  std::int64_t unique_read() const {
    const std::int64_t m = args_.grouped.index_kpool, groups = args_.grouped.group_count;
    std::int64_t bytes = groups * std::int64_t{sizeof(VectorGroup)};
    bytes += access_.distinct_rows() * row().bytes;
    bytes += args_.per_channel ? access_.present_vectors() * f32_row_.bytes
                               : access_.distinct_sets() * m * 4;
    if (normed() && groups > 0) bytes += f32_row_.bytes + groups * args_.rope_dims * 4;
    return bytes;
  }
  std::int64_t stored_bytes() const {
    return stored_row().bytes + (quantised() ? 4 : 0) + (args_.fallbacks != nullptr ? 4 : 0) +
           (args_.checksums != nullptr ? std::int64_t{sizeof(PoolChecksum)} : 0);
  }
  // Per channel: the sums; division, norm and rotation, rounding.
  Flop flop() const {
    const double after = (args_.divide ? 1 : 0) + (normed() ? 4 : 0) + (quantised() ? 3 : 0);
    const auto channels = static_cast<double>(head_dim());
    return Flop(channels * (2 * static_cast<double>(access_.present_vectors()) +
                            after * static_cast<double>(args_.grouped.group_count)));
  }

 private:
  GlobalAccess stored_row() const {
    if (quantised()) return {head_dim(), head_dim() / sector_bytes};
    return row_access(args_.mode.cache, head_dim());
  }
  void add_weights(const WarpGroups& groups, std::int64_t first, std::int64_t end,
                   Traffic& traffic) const {
    if (args_.per_channel) {
      for (std::int64_t g = first; g < end; ++g) add_loads(traffic, access_.present(g) * f32_row_);
      return;
    }
    const GlobalAccess words =
        groups.words(args_.pool_weights, WordRow::of_set, WordPattern::together, false);
    add_loads(traffic, (args_.divide ? 2 : 1) * words);
  }
  std::int64_t reductions() const {
    const std::int64_t sums = args_.checksums == nullptr ? 0 : 4;
    return sums + (normed() ? 1 : 0) + (quantised() ? 1 : 0);
  }

  const WeightedPoolArgs& args_;
  GroupedAccess access_;
  GlobalAccess f32_row_;
};

}  // namespace

Work declared_weighted_pool(const WeightedPoolArgs& args) {
  const PoolAccess pools(args);
  const std::int64_t lanes = group_lanes(args.grouped.head_dim);
  const std::int64_t groups_per_block = policy_threads / lanes;
  const int pieces = pieces_of(args.grouped.head_dim);
  Work work;
  work.traffic = over_warps(args.grouped, 32 / lanes, [&](std::int64_t first, std::int64_t end) {
    return pools.warp(first, end);
  });
  work.unique_read = Bytes(pools.unique_read());
  work.unique_write = Bytes(args.grouped.group_count * pools.stored_bytes());
  work.f32_flop = pools.flop();
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(args.grouped.group_count, groups_per_block);
  work.blocks_per_sm = policy_pool_blocks_per_sm(pieces);
  work.in_flight_per_block =
      Bytes(groups_per_block * vectors_in_flight(pieces) * pools.row().bytes);
  return with_issue(work, weighted_pool_issue(args));
}

}  // namespace indexpool::kernels
