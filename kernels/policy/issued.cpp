#include "indexpool/kernels/policy/issued.hpp"

#include <algorithm>
#include <bit>

#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

// One exchange of a reduction: shuffle, operation, distance, loop.
constexpr Instructions exchange{5, 1, 0};
// Finding the lane's group and loading its record.
constexpr Instructions find_group{42, 19, 0};

double count(std::int64_t n) { return static_cast<double>(n); }

PolicyIssue of_warps(std::int64_t warps, const Instructions& one, Chain chain) {
  chain.instructions = one.issued;
  return {count(warps) * one, chain};
}

// Shapes that counts depend on.
struct GroupCounts {
  double pieces, vectors, batches, rounds, steps;
  std::int64_t warps;

  explicit GroupCounts(const GroupedVectors& grouped) {
    const GroupedAccess access{grouped};
    const int p = pieces_of(grouped.head_dim);
    pieces = p;
    vectors = grouped.index_kpool;
    batches = count(blocks_for(grouped.index_kpool, vectors_in_flight(p)));
    rounds = count(blocks_for(grouped.index_kpool, access.lanes()));
    steps = count(access.tree_steps());
    warps = access.warps();
  }
};

// Kernels that multiply a row with every vector of a group (dot.cuh). `finish`: of a round.
PolicyIssue dot_issue(const GroupedVectors& grouped, bool squares, const Instructions& before,
                      const Instructions& finish, double loads) {
  const GroupCounts n(grouped);
  const double reductions = squares ? 2 : 1;
  constexpr Instructions vector_load{16, 6, 0}, vector_around{5, 3, 0};
  const Instructions products =
      squares ? Instructions{28, 8, 0} : Instructions{16.5, 5, 0};  // of a piece and vector
  Instructions one = find_group + before;
  one += n.pieces * Instructions{8, 3, 0};  // the row itself
  one += n.vectors * (vector_load + vector_around + (reductions * n.steps) * exchange);
  one += (n.vectors * n.pieces) * products;
  one += n.rounds * finish;
  Chain chain;
  chain.first_loads = 1 + n.batches + loads;  // record, rows, terms
  chain.shuffles = n.vectors * reductions * n.steps;
  chain.arithmetic = n.vectors * n.pieces * 8 * reductions + 40 * n.rounds;
  return of_warps(n.warps, one, chain);
}

// The exact pair of a piece.
Instructions exact_sums(DType cache) {
  if (cache == DType::e4m3) return {112, 91, 0};
  if (cache == DType::i8) return {31, 17, 0};
  if (cache == DType::f32) return {66, 46, 0};
  return {46, 30, 0};
}

// What weighted_pool does to its sums, and how many reductions that takes.
struct AfterSums {
  Instructions instructions;
  double reductions = 0, arithmetic = 0;
};
AfterSums after_sums(const WeightedPoolArgs& args, double pieces) {
  const NumericMode& mode = args.mode;
  AfterSums after;
  if (args.divide) after.instructions += Instructions{25, 12, 1} + pieces * Instructions{96, 12, 8};
  if (args.norm_weight != nullptr) {
    after.instructions += Instructions{50, 8, 4} + pieces * Instructions{175, 20, 8};
    after.reductions += 1;
    after.arithmetic += 30;
  }
  if (mode.pooled != DType::f32) after.instructions += pieces * Instructions{22, 4, 8};
  if (args.checksums != nullptr) {
    const Instructions values{32, 2, 0};
    after.instructions += Instructions{30, 12, 0} + pieces * (values + exact_sums(mode.cache));
    after.reductions += 4;
  }
  if (!mode.quantised()) {
    after.instructions += Instructions{15, 6, 0} + pieces * Instructions{15, 3, 4};
    return after;
  }
  after.reductions += 1;
  after.arithmetic += 30;
  const Instructions codes_of_piece =
      mode.scale == ScaleRule::power_of_two ? Instructions{66, 36, 8} : Instructions{122, 38, 16};
  after.instructions += Instructions{45, 25, 1} + pieces * codes_of_piece;
  return after;
}

}  // namespace

PolicyIssue role_weights_issue(const RoleWeightsArgs& args) {
  const std::int64_t lanes = role_lanes(args.index_kpool);
  const double steps = std::countr_zero(static_cast<std::uint64_t>(lanes));
  const Instructions one = Instructions{90, 25, 1} + (2 * steps) * exchange;
  Chain chain;
  chain.first_loads = 1;
  chain.shuffles = 2 * steps;
  chain.arithmetic = 30;
  return of_warps(blocks_for(args.sets, 32 / lanes), one, chain);
}

PolicyIssue additive_weights_issue(const AdditiveWeightsArgs& args) {
  const GroupCounts n(args.grouped);
  const Instructions before =
      Instructions{45, 15, 1} + n.pieces * Instructions{16, 6, 0} + n.steps * exchange;
  return dot_issue(args.grouped, true, before, {135, 42, 4}, 1);
}

PolicyIssue tfidf_weights_issue(const TfidfWeightsArgs& args) {
  const GroupCounts n(args.grouped);
  const Instructions before = Instructions{70, 30, 1} + n.vectors * Instructions{4, 3, 0} +
                              n.pieces * Instructions{16, 6, 0} + n.steps * exchange;
  return dot_issue(args.grouped, true, before, {130, 35, 8}, 2);
}

PolicyIssue gated_weights_issue(const GatedWeightsArgs& args) {
  return dot_issue(args.grouped, false, {60, 20, 3}, {60, 17, 1}, 0);
}

PolicyIssue hidden_gates_issue(const HiddenGatesArgs& args) {
  Chain chain;
  if (args.storage == DType::f32) {
    const double turns = count(blocks_for(args.hidden, piece_channels));
    const double heads = args.heads;
    chain.first_loads = turns;
    chain.shuffles = 5;
    chain.arithmetic = turns * 8 + 5;
    const Instructions one = Instructions{40, 12, 0} + (turns * heads) * Instructions{13, 1, 0} +
                             heads * Instructions{13, 2, 0};
    return of_warps(args.tokens, one, chain);
  }
  const double turns = count(blocks_for(blocks_for(args.hidden, gate_chunk), gate_warps));
  const double tiles = gate_tiles(args.heads);
  chain.first_loads = 1 + turns / 4;  // four turns' loads are issued together
  chain.shared = 1, chain.barriers = 1;
  chain.matrix = 2 * turns;
  chain.arithmetic = gate_warps;
  const Instructions one = Instructions{110, 35, 0} + turns * Instructions{25, 9, 0} +
                           ((tiles - 1) * turns) * Instructions{9, 2, 0};
  return of_warps(blocks_for(args.tokens, gate_tokens) * gate_warps, one, chain);
}

PolicyIssue channel_weights_issue(const ChannelWeightsArgs& args) {
  const double vectors = args.grouped.index_kpool;
  // Per vector: its loads, four exponentials and comparisons, four quotients, a store.
  const Instructions one = Instructions{48, 22, 0} + vectors * Instructions{195, 72, 4};
  const std::int64_t channels = args.grouped.group_count * args.grouped.head_dim;
  Chain chain;
  chain.first_loads = 2;
  chain.arithmetic = 25 + 3 * vectors;
  return of_warps(blocks_for(channels, std::int64_t{32} * quad_channels), one, chain);
}

PolicyIssue weighted_pool_issue(const WeightedPoolArgs& args) {
  const GroupCounts n(args.grouped);
  const AfterSums after = after_sums(args, n.pieces);
  constexpr Instructions vector_load{29, 8, 0}, batch_around{10, 4, 0};
  Instructions one = find_group + Instructions{25, 5, 0} + n.pieces * Instructions{8, 0, 0};
  if (args.divide) one += n.vectors * Instructions{4, 2, 0};
  one += n.batches * batch_around;
  one += n.vectors * (vector_load + n.pieces * Instructions{22, 7, 0});
  if (args.per_channel)
    one += n.vectors * (Instructions{12, 3, 0} + n.pieces * Instructions{3, 0, 0});
  one += after.instructions + (after.reductions * n.steps) * exchange;
  Chain chain;
  chain.first_loads = 1 + n.batches + (args.divide ? 1 : 0);
  chain.shuffles = after.reductions * n.steps;
  chain.arithmetic = 20 + n.vectors + after.arithmetic;
  return of_warps(n.warps, one, chain);
}

PolicyIssue block_max_issue(const BlockMaxArgs& args) {
  const std::int64_t blocks = blocks_for(args.tokens, args.block);
  const double turns = count(blocks_for(args.block, block_max_step));
  const Instructions one = Instructions{125, 55, 3} + turns * Instructions{261, 151, 0};
  Chain chain;
  chain.first_loads = turns;
  chain.shuffles = 5;
  chain.arithmetic = 10 + 8 * turns;
  return of_warps(args.rows * blocks_for(blocks, maxima_per_warp), one, chain);
}

}  // namespace indexpool::kernels
