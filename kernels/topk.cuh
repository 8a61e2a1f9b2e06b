// topk: the index_topk / index_kpool visible pools with the largest logits of each row, as tokens.
//
//   S = the K pools p < visible with the largest logits[row, p]; equal logits: the lower pool; +0
//       and -0 are equal; NaN never. selection[row] = first_key + index_kpool p + j for p in S
//       ascending and j = 0 ... index_kpool - 1, then -1; from column index_topk on, with a forced
//       tail, the tokens behind the last visible pool, then -1.
//
// Shapes. logits [N, logits_stride] f32, selection [N, selection_width] i32, rows of any length.
//
// Who does what. A block owns a row, a warp a contiguous eighth of its pools. Rows of more than K
// pools: four passes count the digits of order-preserving keys, 8 bits each, and leave the K-th
// largest key. Then all rows alike: one pass counts what each warp selects, one writes it down in
// the order of the pools, 32 at a time: the selected ones to their places in the warp's list, the
// others behind them, where the next selected ones overwrite them. Place r lies in bank r % 32 of
// whichever warp's list has it, so that the block reads the lists back without conflicts.
//
// Bytes moved per row: 6 (K pools or fewer: 2) times 4 bytes per visible pool, of which the first
// pass may come from HBM and the others from L2; 4 selection_width out. Neither traffic nor time
// depends on the logits: plateaus and NaN cost what random logits cost.
#pragma once

#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/topk_declared.hpp"
#include "indexpool/kernels/topk_select.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct TopkParams {
  const float* logits;
  std::int64_t logits_stride;
  const QueryRow* rows;
  std::int32_t* selection;
  std::int32_t index_kpool, index_topk, topk_pools, selection_width;
  TopkShared shared;
};

// Writes the pools of the warp's segment that the threshold selects to its list, from place `first`
// on. One vote's bits below a lane's say how many come before it.
class Emitter {
 public:
  IP_DEVICE Emitter(const Threshold& threshold, const Shares& shares, std::int32_t* list)
      : threshold_(threshold), list_(list), place_(shares.first), equal_left_(shares.equal) {}

  // One pool per lane, in order.
  IP_DEVICE void emit(std::uint32_t key, std::int32_t pool) {
    const int lane = ip::lane_index();
    const std::uint32_t before = (1u << lane) - 1;
    std::uint32_t selected = ip::ballot(ip::full_mask, key > threshold_.key);
    const std::uint32_t equal = ip::ballot(ip::full_mask, key == threshold_.key);
    const bool takes = key == threshold_.key && ip::count_bits(equal & before) < equal_left_;
    const std::uint32_t taken = ip::ballot(ip::full_mask, takes);
    equal_left_ -= ip::count_bits(taken);
    selected |= taken;
    const std::int32_t rank = ip::count_bits(selected & before);
    const std::int32_t total = ip::count_bits(selected);
    const bool mine = (selected >> lane & 1u) != 0;
    ip::store_shared(list_ + place_ + (mine ? rank : total + lane - rank), pool);
    place_ += total;
  }

 private:
  Threshold threshold_;
  std::int32_t* list_;
  std::int32_t place_, equal_left_;
};

IP_DEVICE void emit_segment(const Segment& segment, Emitter emitter) {
  const int lane = ip::lane_index();
  const auto pool_at = [&](std::int64_t i) { return static_cast<std::int32_t>(segment.first + i); };
  std::int64_t i = lane;
  for (; i - lane + topk_singles * 32 <= segment.count; i += topk_singles * 32) {
    float v[topk_singles];
    IP_UNROLL for (int j = 0; j < topk_singles; ++j) v[j] =
        ip::load_global(segment.logits + i + j * 32);
    IP_UNROLL for (int j = 0; j < topk_singles; ++j) {
      emitter.emit(order_key(v[j]), pool_at(i + j * 32));
      ip::sync_warp();  // the next 32 may overwrite what this one left behind its last
    }
  }
  for (; i - lane < segment.count; i += 32) {
    const std::uint32_t key =
        i < segment.count ? order_key(ip::load_global(segment.logits + i)) : nan_key;
    emitter.emit(key, pool_at(i));
    ip::sync_warp();
  }
}

// Columns of a row: selected pools as tokens, then the forced tail.
IP_DEVICE void store_selection(const TopkParams& p, const QueryRow& row, std::int64_t visible,
                               const Shares& shares, const std::int32_t* lists,
                               std::int32_t* selection) {
  for (std::int32_t column = ip::thread_index(); column < p.selection_width;
       column += topk_threads) {
    std::int64_t token = -1;
    if (column < p.index_topk) {
      const std::int32_t place = column / p.index_kpool;
      std::int32_t warp = 0;
      IP_UNROLL for (int w = 0; w < topk_warps - 1; ++w) warp += place >= shares.end[w] ? 1 : 0;
      const std::int64_t pool = ip::load_shared(lists + warp * p.shared.list_row + place);
      if (place < shares.end[topk_warps - 1])
        token = pool * p.index_kpool + (column - place * p.index_kpool);
    } else {
      const std::int64_t tail = visible * p.index_kpool + (column - p.index_topk);
      if (tail <= row.position) token = tail;
    }
    ip::store_global(selection + column,
                     static_cast<std::int32_t>(token < 0 ? -1 : row.first_key + token));
  }
}

template <bool Vector>
IP_KERNEL(topk_threads, topk_blocks_per_sm)
void topk_row(TopkParams p) {
  const std::int64_t index = ip::block_index();
  const QueryRow row = load_record(p.rows + index);
  const std::int64_t visible = quotient(row.position + 1, p.index_kpool);
  std::byte* const shared = ip::dynamic_shared();
  auto* const lists = reinterpret_cast<std::int32_t*>(shared);
  auto* const warp_counts = reinterpret_cast<std::int32_t*>(shared + p.shared.warp_counts);
  auto* const warp_pairs = reinterpret_cast<Pair*>(warp_counts + topk_warps);
  auto* const found = reinterpret_cast<Pair*>(shared + p.shared.threshold);

  constexpr std::int64_t group = topk_pool_group;
  const std::int64_t share = (visible + topk_warps * group - 1) / (topk_warps * group) * group;
  const std::int64_t first = share * ip::warp_index();
  const std::int64_t left = visible - first;
  const Segment segment{p.logits + index * p.logits_stride + first, first,
                        left < 0       ? 0
                        : left < share ? left
                                       : share};

  Threshold threshold{nan_key, 0};  // every number is above it
  if (visible > p.topk_pools)
    threshold = find_threshold<Vector>(segment, p.topk_pools, lists, warp_counts, found);
  const Shares shares = share_places<Vector>(segment, threshold, warp_pairs);
  emit_segment(segment, Emitter(threshold, shares, lists + ip::warp_index() * p.shared.list_row));
  ip::sync_block();
  store_selection(p, row, visible, shares, lists, p.selection + index * p.selection_width);
}

inline std::optional<std::string> topk_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<TopkArgs>(&any);
  if (args == nullptr) return "it selects pools";
  return bad_topk(*args);
}

inline void topk_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<TopkArgs>(any);
  const IndexerConfig& config = args.shape.config;
  const TopkParams params = {args.logits,
                             args.logits_stride,
                             args.rows,
                             args.selection,
                             static_cast<std::int32_t>(config.index_kpool),
                             static_cast<std::int32_t>(config.index_topk),
                             static_cast<std::int32_t>(config.topk_pools()),
                             static_cast<std::int32_t>(config.selection_width()),
                             topk_shared(config.topk_pools())};
  ip_launch(context, args.row_count, topk_threads, params.shared.bytes,
            topk_loads_vectors(args) ? topk_row<true> : topk_row<false>, params);
}

inline Work topk_work(const OpArgs& any) { return declared_topk(std::get<TopkArgs>(any)); }

extern const Kernel topk;
const Kernel topk = {"topk", INDEXPOOL_TARGET_NAME, topk_unsupported, topk_launch, topk_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
