#include "indexpool/kernels/attention/issued.hpp"

#include <algorithm>
#include <bit>

#include "indexpool/kernels/attention/geometry.hpp"

namespace indexpool::kernels {
namespace {

double count(std::int64_t n) { return static_cast<double>(n); }
double of_128(std::int64_t dim) { return count(dim) / 128; }

// `warps` that are alike.
void set(Work& work, std::int64_t warps, const Instructions& one, const Chain& chain) {
  work.instructions = count(warps) * one;
  work.chain = chain;
  work.chain.instructions = one.issued;
}

// A 64-bit quotient of the block's number, where its halves are 32 bits wide.
constexpr Instructions divide_index{30, 12, 3};

}  // namespace

void issue_safe_gate(const SafeGateArgs& args, Work& work) {
  const std::int64_t threads =
      args.rows * args.heads * (args.key_dim / std::int64_t{channels_per_lane});
  // Two quotients of the index and the loads; the steepness; a sigmoid a channel; stores.
  const Instructions one = Instructions{31, 12, 0} + 2.0 * divide_index + Instructions{26, 10, 0} +
                           count(channels_per_lane) * Instructions{37, 10, 1} +
                           Instructions{15, 2, 0};
  Chain chain;
  chain.first_loads = 1;
  chain.arithmetic = 50;  // two exponentials, one quotient
  set(work, blocks_for(threads, 32), one, chain);
}

void issue_gate_fusion(const GateFusionArgs& args, Work& work) {
  const std::int64_t threads = args.rows * args.heads * (args.value_dim / fusion_channels);
  const Instructions one = divide_index + Instructions{57, 15, 1} + Instructions{31, 13, 0};
  Chain chain;
  chain.first_loads = 2;  // gate, then branches
  chain.arithmetic = 35;
  set(work, blocks_for(threads, 32), one, chain);
}

void issue_sparse_attention(const SparseAttentionArgs& args, Work& work) {
  const std::int64_t groups = sparse_groups(args.value_dim);
  const double keys = count(blocks_for(args.width, sparse_batch * sparse_groups(args.head_dim)));
  const double values = count(blocks_for(args.width, sparse_batch * groups));
  const double turns = count(blocks_for(args.width, sparse_threads));
  const double steps =
      std::countr_zero(static_cast<std::uint64_t>(args.head_dim / channels_per_lane));
  const double exchanges = sparse_batch * steps;
  Instructions one = Instructions{80, 31, 3} + 2.0 * divide_index;
  one += keys * (Instructions{277, 112, 0} + exchanges * Instructions{5, 1, 0});
  one += Instructions{38, 17, 0} + turns * Instructions{26, 8, 0} + Instructions{70, 20, 3};
  one += Instructions{53, 32, 0} + values * Instructions{184, 65, 0};
  // Warps that have channels add up the groups' sums.
  one += Instructions{19, 2, 0} +
         of_128(args.value_dim) *
             (Instructions{45, 16, 1} + count(groups) * Instructions{3.3, 0.6, 0});
  Chain chain;
  chain.first_loads = 1 + 2 * keys + values;  // numbers and keys, values
  chain.loads = values;                       // the numbers again
  chain.shuffles = keys * exchanges + 10;
  chain.shared = 2 + turns + 1 + count(groups) / 4;
  chain.barriers = 3;
  chain.arithmetic = keys * 10 + turns * 20 + values * sparse_batch + count(groups) + 20;
  set(work, args.rows * args.heads * sparse_warps, one, chain);
}

namespace {

std::int64_t tokens_of(const LinearAttentionArgs& args, std::int64_t sequence) {
  return args.host_sequences == nullptr ? 1 : args.host_sequences[sequence].tokens;
}
// Sums over the sequences: `f(tokens)` of a warp.
template <class F>
Instructions over_sequences(const LinearAttentionArgs& args, F&& f) {
  Instructions sum;
  for (std::int64_t s = 0; s < args.sequence_count; ++s) sum += f(tokens_of(args, s));
  return sum;
}
std::int64_t longest_sequence(const LinearAttentionArgs& args) {
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < args.sequence_count; ++s)
    longest = std::max(longest, tokens_of(args, s));
  return longest;
}

// Record and state in, state out.
Instructions around_state(double d) {
  return 2.0 * divide_index + Instructions{45 + 57 * d, 15 + 6 * d, 0} +
         Instructions{51 + 64 * d, 45 + 24 * d, 0};
}
// A row of K channels normalised, by one warp.
Instructions normalise_row(double d) { return {25 + 88 * d, 12 + 18 * d, 1 + 4 * d}; }

}  // namespace

void issue_linear_step(const LinearAttentionArgs& args, Work& work) {
  const double d = of_128(args.key_dim);
  // Of a block's four warps two normalise a row, one makes the decays.
  const Instructions staging =
      0.25 * (2.0 * normalise_row(d) + Instructions{102 * d, 38 * d, 0}) + Instructions{19, 9, 0};
  const Instructions token = staging + Instructions{40 + 160 * d, 15, 0};
  const auto of_warp = [&](std::int64_t tokens) { return around_state(d) + count(tokens) * token; };
  const std::int64_t warps =
      std::int64_t{args.heads} * (args.value_dim / step_columns) * (step_threads / 32);
  const double longest = count(longest_sequence(args));
  work.instructions = count(warps) * over_sequences(args, of_warp);
  Chain chain;
  chain.first_loads = 2 + longest;  // record, state; each token's rows
  chain.shuffles = longest * 9;     // squares, two sums over a column
  chain.shared = longest * 2;
  chain.barriers = longest;
  chain.arithmetic = longest * (50 + 24 * d);
  chain.instructions = of_warp(longest_sequence(args)).issued;
  work.chain = chain;
}

namespace {

// Of a block that takes a chunk of n tokens with `warps` warps: all of them together.
Instructions chunk_of_block(double n, double warps, double d) {
  const double pairs = n * (n + 1) / 2, parts = 4 * d;  // of 32 channels
  Instructions all = (2 * n) * normalise_row(d);
  all += parts * (Instructions{30, 15, 0} + n * Instructions{4.5, 0.3, 0});  // decays
  all += n * Instructions{38, 12, 0} + pairs * Instructions{20 + 120 * d, 7 + 32 * d, 0};
  all += (n * parts) * Instructions{62, 22, 0} + parts * Instructions{28, 10, 0};
  Instructions column = Instructions{75, 25, 0} + n * Instructions{126 + 80 * d, 55, 0};
  column += Instructions{6 + 32 * d, 0, 0} + n * Instructions{38 + 40 * d, 37, 0};
  return all + warps * column;
}

}  // namespace

void issue_linear_chunk(const LinearAttentionArgs& args, Work& work) {
  constexpr std::int64_t chunk = linear_chunk_tokens;
  const double d = of_128(args.key_dim);
  const std::int64_t warps = args.value_dim / columns_per_warp;
  const auto of_block = [&](std::int64_t tokens) {
    Instructions sum = count(warps) * (around_state(d) + Instructions{39, 20, 3});
    sum += count(tokens / chunk) * chunk_of_block(count(chunk), count(warps), d);
    if (tokens % chunk != 0) sum += chunk_of_block(count(tokens % chunk), count(warps), d);
    return sum;
  };
  const std::int64_t longest = longest_sequence(args);
  const double chunks = count(blocks_for(longest, chunk)), tokens = count(longest);
  const double rounds = count(blocks_for(2 * chunk, warps));  // of a warp's rows
  work.instructions = count(args.heads) * over_sequences(args, of_block);
  Chain chain;
  chain.first_loads = 2 + 2 * chunks;  // record, state; rows and decays, values
  chain.shuffles = chunks * 5 * rounds + tokens * (5 * rounds / 2 + 4);
  chain.shared = chunks * 4 + tokens * 4;
  chain.barriers = 4 * chunks;
  // Sixteen products with a row of A and of R wait for each other; exponentials of a row of A.
  chain.arithmetic = chunks * 40 * rounds + tokens * (2 * count(chunk) + 30 + 8 * d);
  chain.instructions = of_block(longest).issued / count(warps);
  work.chain = chain;
}

namespace {

constexpr std::int64_t tile_warps = tile_threads / 32;

// A thread's products of a tile, four channels a step.
Instructions multiply_tile(double d) { return (32 * d) * Instructions{79, 5, 0}; }

}  // namespace

void issue_decompress(const DecompressArgs& args, Work& work) {
  const double d = of_128(args.head_dim), tiles = 2 * 4 * d;
  const Instructions staging{160 * d, 65 * d, 0};
  const Instructions outputs{70, 20, 0};
  const Instructions one = divide_index + Instructions{10 + 609 * d, 3 + 314 * d, 0} +
                           tiles * (staging + multiply_tile(d) + outputs);
  Chain chain;
  chain.first_loads = 1;
  chain.loads = tiles;  // weights, which other blocks read too
  chain.shared = tiles * 32 * d;
  chain.barriers = 2 * tiles;
  chain.arithmetic = tiles * 128 * d;
  set(work, blocks_for(args.tokens, tile_rows) * args.heads * tile_warps, one, chain);
}

void issue_composite_attention(const CompositeAttentionArgs& args, Work& work) {
  const double d = of_128(args.head_dim);
  const std::int64_t blocks = blocks_for(args.tokens, tile_rows);
  // Keys and values in; products; weights, of which the rescaling of outputs grows with the dim;
  // weighted values, four tokens a step.
  const Instructions tile =
      Instructions{313 * d, 174 * d, 0} + multiply_tile(d) + Instructions{589 + 64 * d, 218, 0} +
      (tile_others / 4.0) * Instructions{12 + 272 * d, 5, 0} + Instructions{10, 7, 0};
  const Instructions once =
      2.0 * divide_index + Instructions{103 + 421 * d, 53 + 284 * d, 0} +
      count(rows_per_thread) * Instructions{22 + 200 * d, 13 + 40 * d, 16 * d};
  const std::int64_t longest = blocks_for(args.tokens, tile_others);
  // Blocks of 2, 4, 6 ... tiles; the last has as many as there are.
  const std::int64_t per_block = tile_rows / tile_others;
  const std::int64_t tiles = blocks == 0 ? 0 : per_block * blocks * (blocks - 1) / 2 + longest;
  const double warps = count(args.heads * tile_warps);
  work.instructions = (warps * count(blocks)) * once + (warps * count(tiles)) * tile;
  Chain chain;
  chain.first_loads = 1;
  chain.loads = count(longest);  // which the blocks before it read too
  chain.shared = count(longest) * (32 * d + tile_others / 4.0);
  chain.shuffles = count(longest) * 3 + 3;
  chain.barriers = 2 * count(longest);
  chain.arithmetic = count(longest) * (128 * d + tile_others + 60);
  chain.instructions = once.issued + count(longest) * tile.issued;
  work.chain = chain;
}

void issue_count_attended(const CountAttendedArgs& args, Work& work) {
  const std::int64_t blocks = attended_counts(args.slots);
  const double steps =
      blocks == 0 ? 0 : count(blocks_for(args.slots, blocks * std::int64_t{slots_per_count}));
  const Instructions one =
      Instructions{16, 3, 0} + steps * Instructions{33, 16, 0} + Instructions{35, 8, 0};
  Chain chain;
  chain.first_loads = steps;
  chain.shuffles = 5;
  chain.shared = 1;
  chain.barriers = 1;
  chain.arithmetic = 10;
  set(work, blocks * feedback_warps, one, chain);
}

void issue_attention_feedback(const AttentionFeedbackArgs& args, Work& work) {
  const double slots =
      args.tokens == 0 ? 0 : count(args.slots) / count(args.tokens);  // of a token, on the average
  // Of a slot: an access, a group; once more to write.
  const Instructions slot = Instructions{70, 35, 3} + Instructions{5, 1, 0};
  const Instructions one = Instructions{63, 16, 0} + Instructions{25, 5, 0} + slots * slot;
  Chain chain;
  chain.first_loads = 2 + 3 * slots;  // count and first slot; slot, accesses, mass
  chain.loads = slots / 4;            // slots once more
  chain.shuffles = 5;
  chain.shared = 1;
  chain.barriers = 1;
  chain.arithmetic = 10 + 25 * slots;
  set(work, blocks_for(args.tokens, feedback_threads) * feedback_warps, one, chain);
}

}  // namespace indexpool::kernels
