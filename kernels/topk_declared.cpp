// Traffic of topk in closed form: what topk.cuh does per row, by warps and their segments.
#include "indexpool/kernels/topk_declared.hpp"

#include <limits>

#include <fmt/format.h>

#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/issued.hpp"
#include "indexpool/kernels/topk_geometry.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t int32_limit = std::numeric_limits<std::int32_t>::max();
// What a block may ask for on sm_80 (CUDA programming guide, technical specifications).
constexpr std::int64_t shared_limit = 163 << 10;
constexpr std::int64_t warp_bytes = 128, vector_warp_bytes = 512;  // 4 and 16 bytes a lane
constexpr std::int64_t warps = topk_warps, bins = topk_bins, pool_group = topk_pool_group;

std::int64_t visible_to(const TopkArgs& args, std::int64_t row) {
  if (args.host_rows == nullptr) return args.logits_stride;
  return (args.host_rows[row].position + 1) / args.shape.config.index_kpool;
}

// A row split into the segments of its warps: most are alike.
struct RowSplit {
  std::int64_t share = 0, full = 0, rest = 0;  // pools of a segment, full ones, pools of the last

  explicit RowSplit(std::int64_t pools) {
    share = blocks_for(pools, warps * pool_group) * pool_group;
    full = share == 0 ? 0 : pools / share;
    rest = pools - full * share;
  }
  template <class F>
  auto sum(F&& f) const {
    return full * f(share) + f(rest);
  }
};

// One pass over a segment whose first logit has an address that is `address` modulo a sector.
GlobalAccess pass_over(std::int64_t address, std::int64_t pools, bool vectors) {
  const std::int64_t in_vectors = vectors ? pools / topk_pool_group * topk_pool_group * 4 : 0;
  GlobalAccess access = contiguous_access(address, in_vectors, vector_warp_bytes);
  access += contiguous_access(address + in_vectors, pools * 4 - in_vectors, warp_bytes);
  return access;
}

GlobalAccess add(GlobalAccess a, const GlobalAccess& b) { return a += b; }

void add_row_loads(Traffic& traffic, std::int64_t address, std::int64_t pools, bool vectors,
                   std::int64_t passes) {
  const RowSplit split(pools);
  const auto one = [&](bool by_vectors) {
    return add(split.full * pass_over(address, split.share, by_vectors),
               pass_over(address, split.rest, by_vectors));
  };
  add_loads(traffic, passes * one(vectors));
  add_loads(traffic, one(false));  // the pass that writes the pools down
}

// Instructions of 32 lanes, one pool each, over all segments.
std::int64_t steps_over(std::int64_t pools) {
  return RowSplit(pools).sum([](std::int64_t n) { return blocks_for(n, 32); });
}

void add_digit(Traffic& traffic, std::int64_t pools) {
  add_shared_stores(traffic, bins * 32 * 4 / vector_warp_bytes, vector_warp_bytes, 4);
  traffic.shared_store.value += pools * 4;  // counts, each lane in its own bank
  traffic.shared_wavefronts += steps_over(pools);
  add_shared_loads(traffic, warps * 32, warp_bytes, 1);
  traffic.shuffles += warps * 5;
  add_shared_stores(traffic, topk_warps, 4, 1);
  add_shared_loads(traffic, warps * warps, 4, 1);
  add_shared_stores(traffic, 1, 8, 1);
  add_shared_loads(traffic, topk_warps, 8, 2);
  traffic.block_barriers += 4;
}

void add_shares(Traffic& traffic) {
  traffic.shuffles += warps * 2 * 5;
  add_shared_stores(traffic, topk_warps, 8, 1);
  add_shared_loads(traffic, warps * warps, 8, 2);
  traffic.block_barriers += 1;
}

void add_emission(Traffic& traffic, std::int64_t pools) {
  const std::int64_t steps = steps_over(pools);
  traffic.shuffles += steps * 3;
  add_shared_stores(traffic, steps, warp_bytes, 1);
  traffic.block_barriers += 1;
}

// Places that the columns of each warp read back, one instruction per 32 columns.
void add_selection_loads(Traffic& traffic, const IndexerConfig& config) {
  for (std::int64_t first = 0; first < config.index_topk; first += 32) {
    const std::int64_t last = std::min(first + 32, config.index_topk) - 1;
    const std::int64_t places = last / config.index_kpool - first / config.index_kpool + 1;
    add_shared_loads(traffic, 1, places * 4, 1);
  }
}

}  // namespace

std::optional<std::string> bad_topk(const TopkArgs& args) {
  const IndexerConfig& config = args.shape.config;
  if (config.index_kpool < 1 || config.index_topk < 1 ||
      config.index_topk % config.index_kpool != 0)
    return fmt::format("index_topk {} is not a positive multiple of index_kpool {}",
                       config.index_topk, config.index_kpool);
  if (config.selection_width() > int32_limit ||
      topk_shared_bytes(config.topk_pools()) > shared_limit)
    return fmt::format("the lists of {} selected pools do not fit {} bytes of shared memory",
                       config.topk_pools(), shared_limit);
  if (args.row_count > int32_limit)
    return fmt::format("{} rows leave a 1-D grid's {} blocks: split them", args.row_count,
                       int32_limit);
  for (std::int64_t row = 0; args.host_rows != nullptr && row < args.row_count; ++row) {
    const QueryRow& query = args.host_rows[row];
    if (query.first_key + query.position > int32_limit)
      return fmt::format("row {} selects up to token {}, beyond what an int32 selection holds", row,
                         query.first_key + query.position);
    if (visible_to(args, row) > args.logits_stride)
      return fmt::format("row {} sees {} pools, but logits_stride is {}", row,
                         visible_to(args, row), args.logits_stride);
  }
  return std::nullopt;
}

bool topk_loads_vectors(const TopkArgs& args) {
  return address_of(args.logits) % 16 == 0 && args.logits_stride % 4 == 0;
}

Work declared_topk(const TopkArgs& args) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t width = config.selection_width(), record = sizeof(QueryRow);
  const bool vectors = topk_loads_vectors(args);
  Work work;
  Traffic& traffic = work.traffic;
  std::int64_t longest = 0;  // row's pools
  for (std::int64_t row = 0; row < args.row_count; ++row) {
    const std::int64_t pools = visible_to(args, row);
    const std::int64_t digits = pools > config.topk_pools() ? topk_digits : 0;
    add_loads(traffic, topk_warps * GlobalAccess{record, record / 16});
    add_row_loads(traffic, address_of(args.logits) + row * args.logits_stride * 4, pools, vectors,
                  digits + 1);
    for (std::int64_t digit = 0; digit < digits; ++digit) add_digit(traffic, pools);
    add_shares(traffic);
    add_emission(traffic, pools);
    add_selection_loads(traffic, config);
    add_stores(traffic, contiguous_access(address_of(args.selection) + row * width * 4, width * 4,
                                          warp_bytes));
    const RowSplit split(pools);
    work.instructions +=
        static_cast<double>(split.full) * topk_instructions(split.share, digits, width) +
        topk_instructions(split.rest, digits, width) +
        static_cast<double>(warps - split.full - 1) * topk_instructions(0, digits, width);
    if (pools >= longest) {
      longest = pools;
      work.chain = topk_chain(split.share, digits, width);
    }
    work.unique_read += Bytes(record + pools * 4);
    work.reread += Bytes((digits + 1) * pools * 4);  // each pass goes through the row
    work.reuse_per_block = std::max(work.reuse_per_block, Bytes(pools * 4));
    work.unique_write += Bytes(width * 4);
  }
  work.blocks = args.row_count;
  work.threads_per_block = topk_threads;
  work.blocks_per_sm = resident_blocks(topk_blocks_per_sm, topk_shared_bytes(config.topk_pools()));
  work.in_flight_per_block =
      Bytes(vectors ? topk_threads * topk_vectors * 16 : topk_threads * topk_singles * 4);
  return work;
}

}  // namespace indexpool::kernels
