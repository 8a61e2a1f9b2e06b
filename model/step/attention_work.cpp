// Attention over the entries of a cache.
#include <algorithm>
#include <cmath>

#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

constexpr std::int64_t tile_entries = 64;  // of a block's step (FlashMLA, FlashAttention)
constexpr std::int64_t tile_heads = 64;    // queries of an entry that a block takes (FlashMLA)
constexpr std::int64_t least_heads = 16;   // rows of a matrix instruction
constexpr std::int64_t threads = 256;
// Fewer rows of a sequence are a decode step with drafts.
constexpr std::int64_t least_prefill_rows = 64;
// Softmax of a score: scale, maximum, exponential, sum, and the output's share of a rescale.
constexpr double flop_per_score = 6;
// Floating-point operations that convert an element stored in eight bits.
constexpr double flop_per_conversion = 2;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return divided_up(value, step) * step;
}

// Mean of min(limit, position / per) over the step's rows of a sequence. limit 0: none.
double mean_capped(const Size& size, double per, double limit) {
  const double last = real(size.tokens);
  const double first = real(size.tokens - size.rows_per_sequence + 1);
  const double cap = limit > 0 ? limit * per : last;
  if (first >= cap) return cap / per;
  const double turn = std::min(cap, last);
  const double rising = turn - first + 1;  // rows that see all there is
  const double sum = rising * (first + turn) / 2 + (last - turn) * cap;
  return sum / (real(size.rows_per_sequence) * per);
}

// Pairs of a row and an entry, all heads one, on this rank.
struct Pairs {
  double cached = 0, window = 0;
};
Pairs pairs_of(const Attention& a, const Size& size) {
  Pairs pairs;
  const double rows = real(size.rows());
  if (a.whole) pairs.cached = rows * mean_entries(a, size) / real(a.context_ranks);
  if (a.window > 0) pairs.window = rows * mean_capped(size, 1, real(a.window));
  return pairs;
}

// Rows of a sequence that a block holds beside each other: their entries are loaded once. With a
// selection of its own, each row loads its own.
double rows_together(const Attention& a, const Size& size) {
  if (a.selected > 0) return 1;
  const std::int64_t group = a.heads / a.key_heads;
  return real(std::clamp<std::int64_t>(tile_heads * 2 / group, 1, size.rows_per_sequence));
}

double loaded_bytes(const Attention& a, const Size& size) {
  const Pairs pairs = pairs_of(a, size);
  const double window_rows = real(std::min<std::int64_t>(size.rows_per_sequence, tile_entries));
  return pairs.cached * real(a.entry_bytes) / rows_together(a, size) +
         pairs.window * real(a.window_entry_bytes) / window_rows;
}

// Entries that a row's blocks go through: all slots of a selection, filled or not.
double slots_of(const Attention& a, const Size& size) {
  const double cached = a.selected > 0 ? real(a.selected) : mean_entries(a, size);
  return (a.whole ? cached / real(a.context_ranks) : 0) + real(a.window);
}

double flop_of(const Attention& a, const Size& size) {
  const double pairs = real(size.rows()) * slots_of(a, size);
  const std::int64_t together = static_cast<std::int64_t>(rows_together(a, size));
  const std::int64_t group = a.heads / a.key_heads * together;
  const double padding = real(rounded_up(group, least_heads)) / real(group);
  return 2 * pairs * real(a.heads) * padding * real(a.key_dim + a.value_dim);
}

// Steps of a block, one after the other: positions and entries are loaded (of the step after next
// while this one is computed, so that one load shows), scores and output are products on the same
// accumulators, a row's largest score and sum pass through its lanes.
Chain chain_of(const Attention& a, double steps, std::int64_t launches) {
  constexpr double mma_k = 16, reductions = 4;
  Chain chain = start_chain(launches);
  chain.first_loads += steps;
  chain.matrix = steps * (real(a.key_dim) / mma_k + real(tile_entries) / mma_k);
  chain.shuffles = steps * reductions;
  chain.barriers = steps * 2;
  return chain;
}

// A decode step splits the entries of a row so that every SM has a block, and joins the parts in a
// second launch; a prefill has rows enough and does not (FlashMLA: sparse prefill and decode).
void add_grid(Work& work, const Attention& a, const Size& size, const DeviceSpec& device) {
  const double together = rows_together(a, size);
  const double tiles = std::ceil(real(size.rows()) / together) * real(a.key_heads) *
                       real(divided_up(a.heads / a.key_heads, tile_heads));
  const double steps = std::max(1.0, std::ceil(slots_of(a, size) / real(tile_entries)));
  const bool splits = size.rows_per_sequence < least_prefill_rows;
  const double split =
      splits ? std::clamp(std::floor(real(device.sm_count) / tiles), 1.0, steps) : 1;
  work.blocks = whole_bytes(tiles * split, "blocks of attention").value;
  work.threads_per_block = threads;
  work.blocks_per_sm = 1;
  work.in_flight_per_block =
      Bytes(2 * tile_entries * std::max<std::int64_t>(1, a.entry_bytes / a.key_heads));
  work.launches = split > 1 ? 2 : 1;
  work.chain = chain_of(a, std::ceil(steps / split), work.launches);
}

// What other rows of a sequence chose too: from the L2 as long as the entries fit there of all
// sequences that blocks work on at once.
void add_rereads(Work& work, const Attention& a, const Size& size, const DeviceSpec& device,
                 double loads) {
  const double cache = real(cache_bytes(a, size).value);
  if (a.selected == 0 || loads <= cache) return;
  work.reread = whole_bytes(loads - cache, "loads of attention");
  const double resident = real(std::min(work.blocks, device.sm_count * work.blocks_per_sm));
  const double of_sequence = real(work.blocks) / real(size.sequences);
  const double sequences = std::min(real(size.sequences), std::ceil(resident / of_sequence));
  work.reuse_per_block = Bytes(std::llround(cache / real(size.sequences) * sequences / resident));
}

}  // namespace

double mean_entries(const Attention& attention, const Size& size) {
  if (!attention.whole) return 0;
  return mean_capped(size, real(attention.tokens_per_entry), real(attention.selected));
}

Bytes cache_bytes(const Attention& a, const Size& size) {
  const Pairs pairs = pairs_of(a, size);
  const double all = real(size.sequences) *
                     real(size.tokens / a.tokens_per_entry / a.context_ranks) * real(a.entry_bytes);
  const double window = real(size.sequences) *
                        real(std::min(size.tokens, a.window + size.rows_per_sequence - 1)) *
                        (a.window > 0 ? real(a.window_entry_bytes) : 0);
  const double cached = !a.whole         ? 0
                        : a.selected > 0 ? std::min(all, pairs.cached * real(a.entry_bytes))
                                         : all;
  return whole_bytes(cached + window, "bytes of attention");
}

Work work_of(const Attention& a, const Size& size, const DeviceSpec& device) {
  const double rows = real(size.rows());
  const double queries = rows * real(a.heads * a.key_dim) * bf16_bytes;
  const double loads = loaded_bytes(a, size);
  const Bytes cache = cache_bytes(a, size);
  Work work;
  work.unique_read = whole_bytes(queries + real(cache.value + a.parameters.value), "bytes read");
  work.unique_write = whole_bytes(rows * real(a.heads * a.value_dim) * bf16_bytes, "bytes written");
  work.traffic.global_load = whole_bytes(queries + loads, "loads of attention");
  work.traffic.global_store = work.unique_write;
  work.matrix_dtype = "bf16";
  work.matrix_flop = Flop(flop_of(a, size));
  const Pairs pairs = pairs_of(a, size);
  work.f32_flop = Flop((pairs.cached + pairs.window) * real(a.heads) * flop_per_score +
                       (a.converted ? loads * flop_per_conversion : 0));
  add_grid(work, a, size, device);
  add_rereads(work, a, size, device, loads);
  return work;
}

}  // namespace indexpool::step
