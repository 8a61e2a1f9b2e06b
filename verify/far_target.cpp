#include "indexpool/verify/far_target.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "indexpool/kernels/geometry.hpp"

namespace indexpool::verify {
namespace {

using namespace kernels;

constexpr std::int64_t gib = std::int64_t{1} << 30;
// Past 2^32 bytes for whatever an index selects, and not so far past it that a wrapped offset
// leaves the buffer; past 2^31 elements where kernels count in floats or table entries; past 2^31
// threads of a grid for the jobs of pool, whose records have 32 bytes and whose pools take at least
// 4 threads.
constexpr std::int64_t ahead = 5 * gib, elements_ahead = 10 * gib;
constexpr std::int64_t jobs_ahead = 18 * gib, checksums_ahead = 9 * gib;

std::int64_t space_before(std::string_view buffer) {
  static constexpr std::string_view far[] = {
      "keys",    "gate_scores", "cache pages",  "tail ring",    "slots",
      "queries", "query rows",  "query scales", "head weights", "query codes",
      "logits",  "selection",   "block table"};
  if (buffer == "pool jobs") return jobs_ahead;
  if (buffer == "checksums") return checksums_ahead;
  if (buffer == "logits" || buffer == "block table") return elements_ahead;
  return std::ranges::find(far, buffer) == std::end(far) ? 0 : ahead;
}

template <class T>
void move_back(T*& pointer, std::int64_t elements) {
  if (pointer != nullptr) pointer -= elements;
}
void move_back(const void*& pointer, std::int64_t bytes) {
  pointer = static_cast<const std::byte*>(pointer) - bytes;
}

// Records that this target holds and that nobody reads but the launch at hand.
template <class T>
std::span<T> own(const T* records, std::int64_t count) {
  return {const_cast<T*>(records), static_cast<std::size_t>(count)};
}

// How far away each kind of thing is.
struct Distance {
  std::int64_t rows = 0, pages = 0, tail_blocks = 0, slots = 0, positions = 0;
};

template <class Args>
Distance move_rows_and_rings(Args& args) {
  Distance far;
  const std::int64_t row = args.shape.config.index_head_dim * info(args.shape.mode.storage).bytes;
  far.rows = ahead / row;
  move_back(args.keys, far.rows * row);
  move_back(args.gate_scores, far.rows * row);
  far.tail_blocks = ahead / args.tail.block_stride;
  move_back(args.tail.base, far.tail_blocks * args.tail.block_stride);
  // Beyond 2^32, and no multiple of a power of two but the ring's own.
  constexpr std::int64_t rounds = 1'500'000'001;
  far.positions = rounds * args.tail.ring;
  return far;
}

void move_pages(PagedCache& cache, Distance& far) {
  far.pages = ahead / cache.page_stride;
  far.slots = far.pages * cache.states_per_page;
  move_back(cache.pages, far.pages * cache.page_stride);
}

// Blocks [first, first + count).
std::vector<std::int64_t> blocks_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

using Blocks = std::vector<std::int64_t>;  // that run; empty: all

Blocks place(PoolArgs& args) {
  Distance far = move_rows_and_rings(args);
  move_pages(args.cache, far);
  for (PoolJob& job : own(args.jobs, args.job_count)) {
    job.slot += far.slots;
    job.last_row += far.rows;
    job.first_position += far.positions;
    job.tail_block += static_cast<std::int32_t>(far.tail_blocks);
  }
  const std::int64_t per_block =
      pool_threads / (args.shape.config.index_head_dim / channels_per_lane);
  const std::int64_t first = jobs_ahead / std::int64_t{sizeof(PoolJob)} / per_block;
  const std::int64_t blocks = blocks_for(args.job_count, per_block);
  move_back(args.jobs, first * per_block);
  move_back(args.checksums, first * per_block);
  args.job_count += first * per_block;
  return blocks_from(first, blocks);
}

Blocks place(SeedTailArgs& args) {
  const Distance far = move_rows_and_rings(args);
  for (TailJob& job : own(args.jobs, args.job_count)) {
    job.row += far.rows;
    job.tail_block += static_cast<std::int32_t>(far.tail_blocks);
  }
  return {};
}

Blocks place(AppendArgs& args) {
  Distance far = move_rows_and_rings(args);
  move_pages(args.cache, far);
  constexpr std::int64_t tokens = checksums_ahead / std::int64_t{sizeof(PoolChecksum)};
  constexpr std::int64_t first = std::min(tokens, ahead / std::int64_t{sizeof(std::int64_t)});
  for (std::int64_t& slot : own(args.slots, args.tokens)) slot += slot < 0 ? 0 : far.slots;
  move_back(args.slots, first);
  move_back(args.checksums, first);
  for (AppendJob& job : own(args.jobs, args.job_count)) {
    job.first_row += far.rows;
    job.first_position += far.positions;
    job.first_slot += first;
    job.tail_block += static_cast<std::int32_t>(far.tail_blocks);
  }
  return {};
}

Blocks place(QuantizeQueryArgs& args) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t row = config.index_n_heads * config.index_head_dim;
  const std::int64_t bytes = row * info(args.shape.mode.storage).bytes;
  const std::int64_t per_block =
      quantize_query_threads / (config.index_head_dim / channels_per_lane);
  const std::int64_t rows = ahead / bytes / per_block * per_block;  // whole blocks of heads
  const std::int64_t blocks = blocks_for(args.rows * config.index_n_heads, per_block);
  move_back(args.queries, rows * bytes);
  move_back(args.codes, rows * row);
  move_back(args.scales, rows * config.index_n_heads);
  args.rows += rows;
  return blocks_from(rows * config.index_n_heads / per_block, blocks);
}

Blocks place(LogitsArgs& args) {
  Distance far;
  move_pages(args.cache, far);
  const IndexerConfig& config = args.shape.config;
  const NumericMode& mode = args.shape.mode;
  const std::int64_t heads = config.index_n_heads;
  const std::int64_t query =
      heads * config.index_head_dim * info(mode.quantised() ? mode.cache : mode.storage).bytes;
  far.rows = std::min(ahead / std::max<std::int64_t>(query, sizeof(QueryRow)),
                      elements_ahead / (args.logits_stride * 4));
  move_back(args.queries, far.rows * query);
  move_back(args.query_scales, far.rows * heads);
  move_back(args.head_weights, far.rows * heads);
  move_back(args.rows, far.rows);
  move_back(args.logits, far.rows * args.logits_stride);
  const std::int64_t requests = elements_ahead / (args.block_table_width * 4);
  std::int64_t entries = 0;
  for (QueryTile& tile : own(args.tiles, args.tile_count)) {
    entries = std::max(entries, (tile.request + std::int64_t{1}) * args.block_table_width);
    tile.first_row += far.rows;
    tile.request += static_cast<std::int32_t>(requests);
  }
  constexpr std::int32_t wild = 1 << 30;  // the table's own: they stay what they are
  for (std::int32_t& page : own(args.block_table, entries))
    page += page < 0 || page >= wild ? 0 : static_cast<std::int32_t>(far.pages);
  move_back(args.block_table, requests * args.block_table_width);
  return {};
}

Blocks place(TopkArgs& args) {
  const std::int64_t width = args.shape.config.selection_width();
  const std::int64_t rows = std::min(ahead / std::max<std::int64_t>(width * 4, sizeof(QueryRow)),
                                     elements_ahead / (args.logits_stride * 4));
  move_back(args.logits, rows * args.logits_stride);
  move_back(args.rows, rows);
  move_back(args.selection, rows * width);
  const std::int64_t blocks = args.row_count;
  args.row_count += rows;
  return blocks_from(rows, blocks);
}

// Published forms run where they lie.
Blocks place(PolicyArgs&) { return {}; }
Blocks place(AttentionArgs&) { return {}; }
Blocks place(BackwardArgs&) { return {}; }

class FarTarget final : public Target {
 public:
  explicit FarTarget(std::unique_ptr<Target> executor) : executor_(std::move(executor)) {}

  std::string_view name() const override { return executor_->name(); }
  Environment environment() const override { return executor_->environment(); }
  std::byte* allocate(std::string buffer, std::int64_t bytes, std::byte poison,
                      bool sparse) override {
    const std::int64_t before = space_before(buffer);
    if (before == 0) return executor_->allocate(std::move(buffer), bytes, poison, sparse);
    std::byte* const begin = executor_->allocate(std::move(buffer), before + bytes, poison, true);
    std::byte* const used = begin + before;
    std::memset(used, std::to_integer<int>(poison), static_cast<std::size_t>(bytes));
    begin_[used] = begin;
    return used;
  }
  void release(std::byte* buffer) override {
    const auto far = begin_.find(buffer);
    executor_->release(far == begin_.end() ? buffer : far->second);
    if (far != begin_.end()) begin_.erase(far);
  }
  void upload(std::byte* to, const void* from, std::int64_t bytes) override {
    executor_->upload(to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::int64_t bytes) override {
    executor_->download(to, from, bytes);
  }
  std::string check_guards() override { return executor_->check_guards(); }
  LaunchContext& context() override { return executor_->context(); }
  void synchronize() override { executor_->synchronize(); }
  std::optional<Measurement> measure(const std::function<void()>&, int, bool) override {
    return std::nullopt;
  }
  OpArgs placed(const OpArgs& args) override {
    OpArgs moved = args;
    executor_->context().simt->options.blocks =
        std::visit([](auto& which) { return place(which); }, moved);
    return moved;
  }

 private:
  std::unique_ptr<Target> executor_;
  std::map<std::byte*, std::byte*> begin_;
};

}  // namespace

std::unique_ptr<Target> make_far_target(std::unique_ptr<Target> executor) {
  return std::make_unique<FarTarget>(std::move(executor));
}

}  // namespace indexpool::verify
