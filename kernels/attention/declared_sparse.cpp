// Traffic of sparse attention, block by block: what a selection holds decides what is read.
#include <algorithm>
#include <bit>
#include <set>

#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t warp_lanes = 32, word_bytes = 4;

// A query's block; `selection` null: all tokens are there.
class SparseTraffic {
 public:
  SparseTraffic(const SparseAttentionArgs& args, std::int64_t row) : args_(args), row_(row) {
    if (args.host_selection != nullptr) selection_ = args.host_selection + row * args.width;
    for (std::int64_t w = 0; w < args.width; ++w) selected_ += is_selected(w);
  }
  std::int64_t selected() const { return selected_; }

  Traffic block() const {
    Traffic traffic;
    add_loads(traffic, std::int64_t{sparse_warps} * row_access(args_.storage, args_.head_dim));
    add_loads(traffic, selected_ * row_access(args_.storage, args_.head_dim));
    tokens(traffic, args_.head_dim, Words::stored);
    traffic.shuffles += scoring_exchanges();
    exchange(traffic);
    if (selected_ == 0) {
      output(traffic);
      return traffic;
    }
    weights(traffic);
    exchange(traffic);
    add_loads(traffic, selected_ * row_access(args_.storage, args_.value_dim));
    tokens(traffic, args_.value_dim, Words::loaded);
    add_shared_stores(traffic, std::int64_t{channels_per_lane} * sparse_warps,
                      warp_lanes * word_bytes, 1);
    ++traffic.block_barriers;
    add_shared_loads(traffic, args_.value_dim / warp_lanes * sparse_groups(args_.value_dim),
                     warp_lanes * word_bytes, 1);
    output(traffic);
    return traffic;
  }

 private:
  enum class Words { stored, loaded };

  bool is_selected(std::int64_t w) const {
    return w < args_.width && (selection_ == nullptr || selection_[w] >= 0);
  }
  std::int64_t batches(std::int64_t dim) const {
    return blocks_for(args_.width, sparse_batch * sparse_groups(dim));
  }
  std::int64_t scoring_exchanges() const {
    const auto lanes = static_cast<std::uint64_t>(args_.head_dim / channels_per_lane);
    return batches(args_.head_dim) * sparse_batch * sparse_warps * std::countr_zero(lanes);
  }
  // The number of the token in every place, and its score or weight in shared memory.
  void tokens(Traffic& traffic, std::int64_t dim, Words words) const {
    const std::int64_t per_warp = sparse_groups(dim) / sparse_warps;
    const std::int64_t end = batches(dim) * sparse_batch * sparse_groups(dim);
    for (std::int64_t first = 0; first < end; first += per_warp) {
      const std::int64_t count = std::clamp<std::int64_t>(args_.width - first, 0, per_warp);
      if (count == 0) continue;
      const std::int64_t at =
          address_of(args_.selection) + (row_ * args_.width + first) * word_bytes;
      add_loads(traffic, {count * word_bytes, sectors_of(at, count * word_bytes)});
      if (words == Words::stored)
        add_shared_stores(traffic, 1, count * word_bytes, 1);
      else
        add_shared_loads(traffic, 1, count * word_bytes, 1);
    }
  }
  void weights(Traffic& traffic) const {
    for (std::int64_t first = 0; first < args_.width; first += warp_lanes) {
      const std::int64_t count = std::min<std::int64_t>(warp_lanes, args_.width - first);
      add_shared_loads(traffic, 1, count * word_bytes, 1);
      add_shared_stores(traffic, 1, count * word_bytes, 1);
    }
  }
  // A reduction over a warp, then over the warps: 16 bytes that all lanes read, by quarter-warps.
  void exchange(Traffic& traffic) const {
    traffic.shuffles += std::int64_t{sparse_warps} * 5;
    add_shared_stores(traffic, sparse_warps, word_bytes, 1);
    ++traffic.block_barriers;
    add_shared_loads(traffic, sparse_warps, sparse_warps * word_bytes, 4);
  }
  void output(Traffic& traffic) const {
    add_stores(traffic, args_.value_dim / warp_lanes * GlobalAccess{warp_lanes * word_bytes, 4});
  }

  const SparseAttentionArgs& args_;
  std::int64_t row_, selected_ = 0;
  const std::int32_t* selection_ = nullptr;
};

// Tokens that any row selects.
std::int64_t distinct_tokens(const SparseAttentionArgs& args) {
  const std::int64_t places = args.rows * args.width;
  if (args.host_selection == nullptr) return std::min(places, args.tokens);
  std::set<std::int32_t> seen(args.host_selection, args.host_selection + places);
  seen.erase(-1);
  return static_cast<std::int64_t>(seen.size());
}

}  // namespace

Work declared_sparse_attention(const SparseAttentionArgs& args) {
  Work work;
  std::int64_t selected = 0;
  for (std::int64_t n = 0; n < args.rows; ++n) {
    const SparseTraffic row(args, n);
    const Traffic block = row.block();
    for (std::int64_t h = 0; h < args.heads; ++h) work.traffic += block;
    selected += row.selected();
  }
  const std::int64_t element = info(args.storage).bytes;
  const std::int64_t dims = args.head_dim + args.value_dim;
  work.unique_read =
      Bytes(args.rows * (element * args.heads * args.head_dim + args.width * word_bytes) +
            distinct_tokens(args) * args.key_heads * dims * element);
  work.unique_write = Bytes(args.rows * args.heads * args.value_dim * word_bytes);
  // Two per element, an exponential (23) and five more per token.
  work.f32_flop =
      Flop(static_cast<double>(selected * args.heads) * (2 * static_cast<double>(dims) + 23 + 5));
  work.blocks = args.rows * args.heads;
  work.threads_per_block = sparse_threads;
  work.blocks_per_sm = resident_blocks(sparse_blocks_per_sm, sparse_shared_bytes(args.width));
  work.in_flight_per_block =
      Bytes(sparse_batch * sparse_groups(args.head_dim) * args.head_dim * element);
  issue_sparse_attention(args, work);
  return work;
}

}  // namespace indexpool::kernels
