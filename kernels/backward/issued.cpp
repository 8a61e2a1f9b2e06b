#include "indexpool/kernels/backward/issued.hpp"

#include <algorithm>
#include <bit>

#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

// One exchange of a reduction: shuffle, operation, distance, loop.
constexpr Instructions exchange{5, 1, 0};

double count(std::int64_t n) { return static_cast<double>(n); }

PolicyIssue of_warps(std::int64_t warps, const Instructions& one, Chain chain) {
  chain.instructions = one.issued;
  return {count(warps) * one, chain};
}

// Shapes that counts of kernels of groups depend on.
struct GroupCounts {
  double pieces, vectors, rounds, steps;
  std::int64_t warps;

  explicit GroupCounts(const GroupedVectors& grouped) {
    const GroupedAccess access{grouped};
    pieces = pieces_of(grouped.head_dim);
    vectors = grouped.index_kpool;
    rounds = count(blocks_for(grouped.index_kpool, access.lanes()));
    steps = count(access.tree_steps());
    warps = access.warps();
  }
};

// Slots whose loads stand together, in kernels that go piece by piece.
double slot_batches(const GroupedVectors& grouped) {
  return count(blocks_for(grouped.index_kpool, slots_in_flight));
}

// A slot of channel_pool_backward in the pass that stores, and in the one that makes the sums
// again; a batch of them; what norm and rotation do besides.
constexpr Instructions slot_stored{133, 80, 0}, slot_summed{48, 15, 0};
constexpr Instructions batch_stored{50, 12, 0}, batch_summed{50, 7, 0};
constexpr Instructions norm_once{14, 8, 4}, norm_piece{270, 21, 16}, rotated_piece{28, 4, 0};

}  // namespace

PolicyIssue pool_backward_issue(const PoolBackwardArgs& args) {
  const GroupCounts n(args.grouped);
  const double batches = count(
      blocks_for(args.grouped.index_kpool, vectors_in_flight(pieces_of(args.grouped.head_dim))));
  // Group, record and gradient; a round of weight gradients that are stored.
  Instructions one = Instructions{105, 33, 0} + n.pieces * Instructions{6, 0, 0};
  one += n.rounds * Instructions{33, 23, 0} + batches * Instructions{44, 11, 0};
  // A vector and its quotient, without the products of its pieces and its tree.
  one += n.vectors * (Instructions{62, 25, 1} + n.pieces * Instructions{32, 5, 0});
  one += (n.vectors * n.steps) * exchange;
  if (n.pieces == 2) one += n.vectors * Instructions{11, 7, 0};  // as it is compiled
  if (args.divide) {
    one += Instructions{45, 18, 1} + n.vectors * Instructions{5, 1.5, 0};
    one += n.rounds * Instructions{0, 0, 1};
  }
  Chain chain;
  // Record; weights, with the first row where there is nothing to add up; rows.
  chain.first_loads = 1 + (args.divide || n.vectors > 1 ? 1 : 0) + batches;
  chain.shuffles = n.vectors * n.steps;
  chain.arithmetic = (args.divide ? 77 : 30) + n.vectors * (21 + n.steps + 12 * n.pieces);
  return of_warps(n.warps, one, chain);
}

PolicyIssue channel_pool_backward_issue(const ChannelPoolBackwardArgs& args) {
  const GroupCounts n(args.grouped);
  const double batches = n.pieces * slot_batches(args.grouped), slots = n.pieces * n.vectors;
  const bool normed = args.norm_weight != nullptr;
  Instructions one = Instructions{68, 31, 0} + n.pieces * Instructions{30, 0, 0};
  one += slots * slot_stored + batches * batch_stored;
  Chain chain;
  chain.first_loads = 1 + batches;  // record, then gradient and rows
  chain.arithmetic = 36 + 24 * slots;
  if (normed) {
    const double rotated = count(blocks_for(args.rope_dims, piece_channels));
    one += slots * slot_summed + batches * batch_summed;
    one += norm_once + n.pieces * norm_piece + rotated * rotated_piece;
    one += (2 * n.steps) * exchange;
    chain.first_loads += rotated;
    chain.loads = n.pieces + batches;  // the norm's weights, the rows once more
    chain.shuffles = 2 * n.steps;
    chain.arithmetic += 29 + 100 * n.pieces + 20 * slots;
  }
  return of_warps(n.warps, one, chain);
}

PolicyIssue gate_backward_issue(const GateBackwardArgs& args) {
  const GroupCounts n(args.grouped);
  const double batches = n.pieces * slot_batches(args.grouped), slots = n.pieces * n.vectors;
  Instructions one = Instructions{54, 22, 3} + n.pieces * Instructions{60, 15, 0};
  one += batches * Instructions{79, 21, 0};
  // Of more than one piece the compiler stores a slot's channels one by one.
  one += slots * (n.pieces > 1 ? Instructions{80, 26, 0} : Instructions{72, 24.4, 0});
  Chain chain;
  chain.first_loads = 1 + (n.vectors > 1 ? 1 : 0) + batches;  // record, weights, rows
  // Each slot's weights are waited for before the next one's loads. They lie in a sector that the
  // warp has just read: in the L1, which is the memory that blocks share (Hopper tuning guide).
  chain.shared = slots - batches;
  chain.arithmetic = n.pieces * 16 + 10 * slots;
  return of_warps(n.warps, one, chain);
}

PolicyIssue cosine_backward_issue(const CosineBackwardArgs& args) {
  const GroupCounts n(args.grouped);
  const int in_flight = vectors_in_flight(pieces_of(args.grouped.head_dim));
  const double batches = count(blocks_for(args.grouped.index_kpool, in_flight));
  constexpr Instructions of_piece{85, 26.7, 0},
      prepared{31, 10, 0};                     // also where nothing is loaded
  constexpr Instructions of_trees{5, 1.5, 0};  // two side by side, an exchange of one
  Instructions one = Instructions{73, 21, 1} + n.pieces * Instructions{46, 16, 0};
  one += n.rounds * Instructions{11, 11, 0} + batches * Instructions{0, 0, 1};
  one += (batches * in_flight) * prepared;
  // Two norms and two quotients, and what depends on the channels.
  one += n.vectors * (Instructions{86, 24.7, 4} + n.pieces * of_piece);
  one += ((2 * n.vectors + 1) * n.steps) * of_trees;
  Chain chain;
  // Record and query, rows, and the gradients that vectors already have: loaded between the stores,
  // a piece at a time.
  chain.first_loads = 1 + batches + n.vectors * n.pieces;
  chain.shuffles = (2 * n.vectors + 1) * n.steps;
  chain.arithmetic = 42 + 9 * n.pieces + n.vectors * (52 + 2 * n.steps + 14 * n.pieces);
  return of_warps(n.warps, one, chain);
}

PolicyIssue additive_terms_backward_issue(const AdditiveTermsBackwardArgs& args) {
  Chain chain;
  chain.first_loads = 3;  // distances, ages and cosines: quotients stand between them
  chain.shuffles = 6;     // trees of all terms side by side
  chain.arithmetic = 36;
  return of_warps(term_row_count(args.group_count, args.index_kpool), {238, 61, 4}, chain);
}

PolicyIssue tfidf_terms_backward_issue(const TfidfTermsBackwardArgs& args) {
  const int kpool = args.grouped.index_kpool;
  const double steps = std::countr_zero(static_cast<std::uint64_t>(role_lanes(kpool)));
  Chain chain;
  chain.first_loads = 3;  // record and accesses, groups accessed, cosines and position terms
  chain.shuffles = 5 + steps;
  chain.arithmetic = 60 + steps;
  return of_warps(term_row_count(args.grouped.group_count, kpool),
                  Instructions{195, 51, 7} + steps * Instructions{5, 2, 0}, chain);
}

PolicyIssue channel_softmax_backward_issue(const ChannelSoftmaxBackwardArgs& args) {
  const double capacity = channel_capacity(args.index_kpool), vectors = args.index_kpool;
  // Absent places are multiplied too, but not stored.
  const Instructions one = Instructions{18, 7, 0} + capacity * Instructions{25, 10, 0} +
                           vectors * Instructions{13.4, 1.7, 0};
  Chain chain;
  chain.first_loads = 1;
  chain.arithmetic = 7 * capacity - 4 + 3 * vectors;
  const std::int64_t lanes = args.group_count * (args.head_dim / quad_channels);
  return of_warps(blocks_for(lanes, 32), one, chain);
}

PolicyIssue role_softmax_backward_issue(const RoleSoftmaxBackwardArgs& args) {
  const std::int64_t lanes = role_lanes(args.index_kpool);
  const double steps = std::countr_zero(static_cast<std::uint64_t>(lanes));
  Chain chain;
  chain.first_loads = 1;
  chain.shuffles = steps;
  chain.arithmetic = 20 + steps;
  return of_warps(blocks_for(args.sets, 32 / lanes), Instructions{57, 24, 0} + steps * exchange,
                  chain);
}

PolicyIssue hidden_states_backward_issue(const HiddenStatesBackwardArgs& args) {
  // Four heads a turn, the others one by one.
  const double turns = count(args.heads / 4), others = count(args.heads % 4);
  Instructions one =
      Instructions{97, 34, 3} + turns * Instructions{90, 34, 0} + others * Instructions{29, 12, 0};
  if (turns > 0 && others > 0) one += Instructions{17, 7, 0};
  Chain chain;
  chain.first_loads = 1;
  chain.loads = std::max(0.0, turns + others - 1);  // rows of the gate, which other tokens read too
  chain.arithmetic = 36 + 9 * turns + 4 * others;
  return of_warps(blocks_for(args.tokens * (args.hidden / channels_per_lane), 32), one, chain);
}

PolicyIssue hidden_gate_backward_issue(const HiddenGateBackwardArgs& args) {
  constexpr Instructions around{99, 38, 6}, token{27, 11.8, 0};
  const std::int64_t row_lanes = std::int64_t{args.heads} * (args.hidden / channels_per_lane);
  const double tokens = count(std::min<std::int64_t>(args.tokens, gate_tokens));
  Chain chain;
  chain.first_loads = tokens;  // a token's are waited for before the next one's
  chain.arithmetic = 46 + 5 * tokens;
  const std::int64_t warps = blocks_for(blocks_for(args.tokens, gate_tokens) * row_lanes, 32);
  PolicyIssue issue = of_warps(warps, around + tokens * token, chain);
  // The last block may have fewer tokens.
  issue.instructions = count(warps) * around + (count(args.tokens * row_lanes) / 32) * token;
  return issue;
}

namespace {

// Of a warp of sum_rows that takes so many turns of `rows_in_flight` rows a lane.
struct SumTurns {
  const SumRowsArgs& args;
  bool listed = args.rows != nullptr, wide = words_per_unit(args.width) == 4;
  double at_once = 32.0 / sum_lanes(args.width);
  double steps = std::countr_zero(static_cast<std::uint64_t>(at_once));

  std::int64_t of(std::int64_t segment) const {
    return blocks_for(args.host_first[segment + 1] - args.host_first[segment],
                      rows_in_flight * static_cast<std::int64_t>(at_once));
  }
  Instructions instructions(std::int64_t turns) const {
    if (turns == 0) return Instructions{90, wide ? 30.0 : 36.0, 3} + steps * tree();
    return Instructions{143, wide ? 58.0 : 64.0, 6} + count(turns) * turn() + steps * tree();
  }
  Chain chain(std::int64_t turns) const {
    // Two turns' rows are waited for together, as are their places in the list, which are new to
    // the warp each turn unless it takes one row at a time.
    const double pairs = count((turns + 1) / 2), single = count(turns);
    Chain chain;
    chain.first_loads = 1 + (wide ? pairs : single);
    if (listed && turns > 0) chain.first_loads += wide && at_once > 1 ? single : pairs;
    chain.shuffles = steps;
    chain.arithmetic = turns == 0 ? 40 : 65 + 17 * single;
    chain.instructions = instructions(turns).issued;
    return chain;
  }

 private:
  Instructions turn() const {
    if (wide) return listed ? Instructions{96, 34.5, 0} : Instructions{88, 23, 0};
    return listed ? Instructions{77, 31.4, 0} : Instructions{71, 23.4, 0};
  }
  Instructions tree() const { return wide ? Instructions{12, 2, 0} : Instructions{6, 1, 0}; }
};

}  // namespace

PolicyIssue sum_rows_issue(const SumRowsArgs& args) {
  const SumTurns turns{args};
  PolicyIssue issue;
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s < args.segments; ++s) {
    issue.instructions += turns.instructions(turns.of(s));
    longest = std::max(longest, turns.of(s));
  }
  issue.instructions = count(sum_tiles(args.width)) * issue.instructions;
  issue.chain = turns.chain(longest);
  return issue;
}

}  // namespace indexpool::kernels
