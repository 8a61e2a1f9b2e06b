// Traffic of the pooling kernels, warp by warp: what geometry.hpp and the kernels' loops imply.
#include "indexpool/kernels/declared.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/issued.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t sector = 32, warp_lanes = 32, vector_bytes = 16, scale_bytes = 4;

// One access of a whole head by its lanes.
struct Access {
  std::int64_t bytes = 0, sectors = 0;
};
// Eight elements a lane: where they take two vectors, each instruction touches every sector.
Access head_access(DType dtype, std::int64_t head_dim) {
  const std::int64_t lane_bytes = std::int64_t{channels_per_lane} * info(dtype).bytes;
  const std::int64_t instructions = std::max<std::int64_t>(1, lane_bytes / vector_bytes);
  const std::int64_t bytes = head_dim * info(dtype).bytes;
  return {bytes, instructions * bytes / sector};
}

void add_loads(Traffic& traffic, Access access, std::int64_t count) {
  traffic.global_load.value += count * access.bytes;
  traffic.load_sectors += count * access.sectors;
}
void add_stores(Traffic& traffic, Access access, std::int64_t count) {
  traffic.global_store.value += count * access.bytes;
  traffic.store_sectors += count * access.sectors;
}

// Distinct sectors among the byte offsets that one instruction of a warp touches.
class SectorSet {
 public:
  void insert(std::int64_t byte) {
    const std::int64_t value = byte / sector;
    if (std::find(seen_.begin(), seen_.end(), value) == seen_.end()) seen_.push_back(value);
  }
  std::int64_t take() {
    const auto count = static_cast<std::int64_t>(seen_.size());
    seen_.clear();
    return count;
  }

 private:
  std::vector<std::int64_t> seen_;
};

std::int64_t lanes_per_head(std::int64_t head_dim) { return head_dim / channels_per_lane; }
std::int64_t heads_per_warp(std::int64_t head_dim) { return warp_lanes / lanes_per_head(head_dim); }
std::int64_t tree_steps(std::int64_t head_dim) {
  return std::countr_zero(static_cast<std::uint64_t>(lanes_per_head(head_dim)));
}

// Loads, stores and shuffles of closing pools (pool_math.cuh).
class PoolTraffic {
 public:
  PoolTraffic(const Shape& shape, const PagedCache& cache, bool checksums)
      : kpool_(shape.config.index_kpool),
        head_dim_(shape.config.index_head_dim),
        mode_(shape.mode),
        cache_(cache),
        layout_(page_layout(shape, cache.states_per_page)),
        checksums_(checksums) {}

  // How often scores are read: once when the pool stays in registers, else once per pass.
  std::int64_t score_reads() const {
    const std::int64_t passes = mode_.pool_rounding == PoolRounding::f32_accumulate ? 2 : 3;
    return kpool_ == tokens_in_flight ? 1 : passes;
  }
  Access row() const { return head_access(mode_.storage, head_dim_); }

  // A warp that closes `pools` pools together, `loaded_tokens` of each from memory.
  void close(Traffic& traffic, std::int64_t pools, std::int64_t loaded_tokens) const {
    add_loads(traffic, row(), pools * loaded_tokens * (score_reads() + 1));
    add_loads(traffic, head_access(DType::f32, head_dim_), kpool_ * score_reads());
    add_stores(traffic, head_access(mode_.cache, head_dim_), pools);
    if (mode_.quantised()) traffic.global_store.value += pools * scale_bytes;
    if (checksums_) traffic.global_store.value += pools * std::int64_t{sizeof(PoolChecksum)};
    std::int64_t exchanges = mode_.quantised() ? 1 : 0;
    if (mode_.hadamard) exchanges += channels_per_lane;
    if (checksums_) exchanges += 4;
    traffic.shuffles += exchanges * tree_steps(head_dim_);
  }
  // The sectors of scales and checksums depend on where the pools go.
  void place(std::int64_t slot, std::int64_t checksum_index) {
    const std::int64_t page = slot / cache_.states_per_page, state = slot % cache_.states_per_page;
    if (mode_.quantised())
      scales_.insert(page * cache_.page_stride + layout_.scale_offset() + state * scale_bytes);
    if (checksums_) sums_.insert(checksum_index * std::int64_t{sizeof(PoolChecksum)});
  }
  void end_warp(Traffic& traffic) { traffic.store_sectors += scales_.take() + sums_.take(); }

  std::int64_t stored_bytes() const {
    return layout_.code_bytes() + (mode_.quantised() ? scale_bytes : 0) +
           (checksums_ ? std::int64_t{sizeof(PoolChecksum)} : 0);
  }
  std::int64_t ape_bytes() const { return kpool_ * head_dim_ * info(DType::f32).bytes; }
  Flop flop(std::int64_t pools) const;

 private:
  std::int64_t kpool_, head_dim_;
  NumericMode mode_;
  PagedCache cache_;
  PageLayout layout_;
  bool checksums_;
  SectorSet scales_, sums_;
};

double rotation_flop(std::int64_t head_dim) {  // per channel: log2 D sums and one product
  return std::bit_width(static_cast<std::uint64_t>(head_dim)) - 1 + 1;
}
constexpr double quantiser_flop = 3;  // per channel: comparison, scaling, rounding

// Per channel and token: exp_f32 is 10 fused multiply-adds, a subtraction and two products; then
// the bias, the shift, the two running sums. Per channel: the division.
Flop PoolTraffic::flop(std::int64_t pools) const {
  constexpr double exponential = 2 * 10 + 3, around = 1 + 1 + 1 + 1 + 2;
  double per_channel = static_cast<double>(kpool_) * (exponential + around) + 1;
  if (mode_.hadamard) per_channel += rotation_flop(head_dim_);
  if (mode_.quantised()) per_channel += quantiser_flop;
  return Flop(static_cast<double>(pools) * static_cast<double>(head_dim_) * per_channel);
}

void set_grid(Work& work, std::int64_t items, std::int64_t threads, std::int64_t head_dim) {
  work.threads_per_block = threads;
  work.blocks = blocks_for(items, threads / lanes_per_head(head_dim));
}

}  // namespace

Work declared_pool(const PoolArgs& args) {
  const IndexerConfig& config = args.shape.config;
  PoolTraffic pools(args.shape, args.cache, args.checksums != nullptr);
  const std::int64_t per_warp = heads_per_warp(config.index_head_dim);
  const std::int64_t job_bytes = sizeof(PoolJob);
  Work work;
  Traffic& traffic = work.traffic;
  for (std::int64_t first = 0; first < args.job_count; first += per_warp) {
    const std::int64_t count = std::min(per_warp, args.job_count - first);
    add_loads(traffic, {job_bytes, job_bytes / vector_bytes}, count);
    pools.close(traffic, count, config.index_kpool);
    for (std::int64_t i = first; i < first + count; ++i)
      pools.place(args.host_jobs != nullptr ? args.host_jobs[i].slot : i, i);
    pools.end_warp(traffic);
  }
  const std::int64_t rows_bytes = 2 * config.index_kpool * pools.row().bytes;
  work.unique_read = Bytes(args.job_count * (job_bytes + rows_bytes) +
                           (args.job_count > 0 ? pools.ape_bytes() : 0));
  work.unique_write = Bytes(args.job_count * pools.stored_bytes());
  work.f32_flop = pools.flop(args.job_count);
  set_grid(work, args.job_count, pool_threads, config.index_head_dim);
  work.blocks_per_sm = pool_blocks_per_sm(args.shape.mode.storage);
  const bool checksums = args.checksums != nullptr;
  work.instructions = static_cast<double>(blocks_for(args.job_count, per_warp)) *
                      pool_instructions(args.shape, checksums);
  work.chain = pool_chain(args.shape, checksums);
  const std::int64_t tokens = std::min<std::int64_t>(config.index_kpool, tokens_in_flight);
  work.in_flight_per_block =
      Bytes(pool_threads / lanes_per_head(config.index_head_dim) * 2 * tokens * pools.row().bytes);
  return work;
}

Work declared_seed_tail(const SeedTailArgs& args) {
  const std::int64_t head_dim = args.shape.config.index_head_dim;
  const Access row = head_access(args.shape.mode.storage, head_dim);
  const std::int64_t job_bytes = sizeof(TailJob), per_warp = heads_per_warp(head_dim);
  Work work;
  for (std::int64_t first = 0; first < args.job_count; first += per_warp) {
    const std::int64_t count = std::min(per_warp, args.job_count - first);
    add_loads(work.traffic, {count * job_bytes, blocks_for(count * job_bytes, sector)}, 1);
  }
  add_loads(work.traffic, row, 2 * args.job_count);
  add_stores(work.traffic, row, 2 * args.job_count);
  work.unique_read = Bytes(args.job_count * (job_bytes + 2 * row.bytes));
  work.unique_write = Bytes(args.job_count * 2 * row.bytes);
  set_grid(work, args.job_count, seed_tail_threads, head_dim);
  work.blocks_per_sm = seed_tail_blocks_per_sm;
  work.instructions =
      static_cast<double>(blocks_for(args.job_count, per_warp)) * seed_tail_instructions();
  work.chain = seed_tail_chain();
  work.in_flight_per_block = Bytes(seed_tail_threads / lanes_per_head(head_dim) * 2 * row.bytes);
  return work;
}

namespace {

// One warp of append: its requests' tokens step by step.
void append_warp(const AppendArgs& args, std::span<const AppendJob> jobs, PoolTraffic& pools,
                 Traffic& traffic) {
  const std::int64_t job_bytes = sizeof(AppendJob), slot_bytes = sizeof(std::int64_t);
  add_loads(traffic, {job_bytes, job_bytes / vector_bytes}, std::ssize(jobs));
  std::int32_t steps = 0;
  for (const AppendJob& job : jobs) steps = std::max(steps, job.tokens);
  traffic.shuffles += steps + 1;  // votes: is any token left
  SectorSet slots;
  for (std::int32_t t = 0; t < steps; ++t) {
    std::int64_t active = 0, closing = 0;
    for (const AppendJob& job : jobs) {
      if (t >= job.tokens) continue;
      const std::int64_t index = job.first_slot + t;
      ++active;
      slots.insert(index * slot_bytes);
      if (args.host_slots[index] < 0) continue;
      ++closing;
      pools.place(args.host_slots[index], index);
    }
    add_loads(traffic, {active * slot_bytes, slots.take()}, 1);
    add_loads(traffic, pools.row(), 2 * active);
    add_stores(traffic, pools.row(), 2 * active);
    ++traffic.shuffles;  // vote: does any pool close
    if (closing > 0) pools.close(traffic, closing, args.shape.config.index_kpool - 1);
    pools.end_warp(traffic);
  }
}

}  // namespace

Work declared_append(const AppendArgs& args) {
  const IndexerConfig& config = args.shape.config;
  PoolTraffic pools(args.shape, args.cache, args.checksums != nullptr);
  // Without the host's view: one token per request, pools closed by the first requests.
  std::vector<AppendJob> assumed_jobs;
  std::vector<std::int64_t> assumed_slots;
  AppendArgs known = args;
  if (args.host_jobs == nullptr || (args.host_slots == nullptr && args.tokens > 0)) {
    for (std::int64_t i = 0; i < args.job_count; ++i) {
      assumed_jobs.push_back({i, 0, i, 1, 0});
      assumed_slots.push_back(i < args.pools_closed ? i : -1);
    }
    known.host_jobs = assumed_jobs.data();
    known.host_slots = assumed_slots.data();
  }
  Work work;
  const std::int64_t per_warp = heads_per_warp(config.index_head_dim);
  const std::int64_t per_block = append_threads / lanes_per_head(config.index_head_dim);
  set_grid(work, args.job_count, append_threads, config.index_head_dim);
  for (std::int64_t first = 0; first < work.blocks * per_block; first += per_warp) {
    const std::int64_t begin = std::min(first, args.job_count);
    const std::int64_t end = std::min(first + per_warp, args.job_count);
    append_warp(known, {known.host_jobs + begin, known.host_jobs + end}, pools, work.traffic);
  }
  const std::int64_t row_bytes = pools.row().bytes;
  const std::int64_t ring_bytes = 2 * (config.index_kpool - 1) * row_bytes;
  work.unique_read =
      Bytes(args.job_count * std::int64_t{sizeof(AppendJob)} +
            args.tokens * (2 * row_bytes + std::int64_t{sizeof(std::int64_t)}) +
            args.pools_closed * ring_bytes + (args.pools_closed > 0 ? pools.ape_bytes() : 0));
  work.unique_write = Bytes(args.tokens * 2 * row_bytes + args.pools_closed * pools.stored_bytes());
  work.f32_flop = pools.flop(args.pools_closed);
  work.blocks_per_sm = append_blocks_per_sm;
  // Requests close pools at their own steps; a warp that closes one does it for all its lanes.
  const bool closes = args.pools_closed > 0;
  const double warps = static_cast<double>(blocks_for(args.job_count, per_warp));
  const double steps =
      static_cast<double>(blocks_for(args.tokens, std::max<std::int64_t>(1, args.job_count)));
  const double closing = std::min(warps * steps, static_cast<double>(args.pools_closed));
  const bool checksums = args.checksums != nullptr;
  work.instructions = closing * append_instructions(args.shape, checksums, true) +
                      (warps * steps - closing) * append_instructions(args.shape, checksums, false);
  work.chain = append_chain(args.shape, checksums, static_cast<std::int64_t>(steps), closes);
  work.in_flight_per_block = Bytes(per_block * 2 * row_bytes);
  return work;
}

Work declared_quantize_query(const QuantizeQueryArgs& args) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t head_dim = config.index_head_dim, heads = args.rows * config.index_n_heads;
  const Access query = head_access(args.shape.mode.storage, head_dim);
  const std::int64_t warps = blocks_for(heads, heads_per_warp(head_dim));
  Work work;
  Traffic& traffic = work.traffic;
  add_loads(traffic, query, heads);
  add_stores(traffic, head_access(args.shape.mode.cache, head_dim), heads);
  // A warp's scales are neighbours, at most eight: one sector.
  traffic.global_store.value += heads * scale_bytes;
  traffic.store_sectors += warps;
  const std::int64_t exchanges = 1 + (args.shape.mode.hadamard ? channels_per_lane : 0);
  traffic.shuffles = warps * exchanges * tree_steps(head_dim);
  work.unique_read = traffic.global_load;
  work.unique_write = traffic.global_store;
  const double per_channel =
      quantiser_flop + (args.shape.mode.hadamard ? rotation_flop(head_dim) : 0);
  work.f32_flop = Flop(static_cast<double>(heads * head_dim) * per_channel);
  set_grid(work, heads, quantize_query_threads, head_dim);
  work.blocks_per_sm = quantize_query_blocks_per_sm;
  work.instructions = static_cast<double>(warps) * quantize_query_instructions(args.shape);
  work.chain = quantize_query_chain(args.shape);
  work.in_flight_per_block = Bytes(quantize_query_threads / lanes_per_head(head_dim) * query.bytes);
  return work;
}

}  // namespace indexpool::kernels
