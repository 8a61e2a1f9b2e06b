// Traffic of the feedback: which slots the tokens of a warp hold decides what is read.
#include <algorithm>

#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t warp_lanes = 32, word_bytes = 4, vector_bytes = 16;
constexpr std::int64_t tree_steps = 5;  // of a whole warp
// 16 bytes a lane are served by quarter-warps, whose lanes read the same ones.
constexpr std::int64_t quarter_warps = 4;

// Of `blocks` blocks: a sum over each.
Traffic sums_over_block(std::int64_t blocks) {
  Traffic traffic;
  const std::int64_t warps = blocks * feedback_warps;
  traffic.shuffles = warps * tree_steps;
  traffic.block_barriers = blocks;
  add_shared_stores(traffic, warps, word_bytes, 1);
  add_shared_loads(traffic, warps * feedback_warps / 4, vector_bytes, quarter_warps);
  return traffic;
}

// `count` words from word `first` on, a warp's worth at most.
GlobalAccess words(std::int64_t first, std::int64_t count) {
  return {count * word_bytes, sectors_of(first * word_bytes, count * word_bytes)};
}

// The slots of each token.
class SlotLists {
 public:
  explicit SlotLists(const AttentionFeedbackArgs& args) : args_(args) {}
  // All tokens have as many, and those of the k-th follow those of the one before.
  bool regular() const {
    return args_.host_token_slots == nullptr && args_.slots % args_.tokens == 0;
  }
  std::int64_t first(std::int64_t token) const {
    if (args_.host_first_slot != nullptr) return args_.host_first_slot[token];
    return token * args_.slots / args_.tokens;
  }
  std::int64_t slot(std::int64_t i) const {
    return args_.host_token_slots != nullptr ? args_.host_token_slots[i] : i;
  }

 private:
  const AttentionFeedbackArgs& args_;
};

// Tokens [first, end) of a warp.
Traffic warp_of_tokens(const SlotLists& lists, std::int64_t first, std::int64_t end) {
  Traffic traffic;
  add_loads(traffic, words(first, end - first));
  add_loads(traffic, words(first + 1, end - first));
  bool more = true;
  for (std::int64_t i = 0; more; ++i) {
    more = false;
    WarpInstruction places, slots;
    for (std::int64_t token = first; token < end; ++token) {
      const std::int64_t at = lists.first(token) + i;
      if (at >= lists.first(token + 1)) continue;
      more = true;
      places.touch(at * word_bytes, word_bytes);
      slots.touch(lists.slot(at) * word_bytes, word_bytes);
    }
    const GlobalAccess of_slots = slots.take();
    add_loads(traffic, 2 * places.take());  // once to count, once to write
    add_loads(traffic, 2 * of_slots);       // masses, accesses
    add_stores(traffic, 2 * of_slots);
  }
  return traffic;
}

Traffic all_tokens(const AttentionFeedbackArgs& args) {
  const SlotLists lists(args);
  const std::int64_t warps = args.tokens / warp_lanes, tail = warps * warp_lanes;
  Traffic sum;
  if (tail < args.tokens) sum += warp_of_tokens(lists, tail, args.tokens);
  if (warps == 0) return sum;
  // A regular warp's words start on a sector, whatever warp it is.
  if (lists.regular()) return sum += times(warps, warp_of_tokens(lists, 0, warp_lanes));
  for (std::int64_t w = 0; w < warps; ++w)
    sum += warp_of_tokens(lists, w * warp_lanes, (w + 1) * warp_lanes);
  return sum;
}

void set_feedback(Work& work, std::int64_t blocks) {
  work.blocks = blocks;
  work.threads_per_block = feedback_threads;
  work.blocks_per_sm = feedback_blocks_per_sm;
}

}  // namespace

Work declared_count_attended(const CountAttendedArgs& args) {
  const std::int64_t blocks = attended_counts(args.slots);
  const std::int64_t bytes = args.slots / slots_per_thread * slots_per_thread * word_bytes;
  Work work;
  work.traffic = sums_over_block(blocks);
  add_loads(work.traffic, {bytes, blocks_for(bytes, sector_bytes)});
  const std::int64_t rest = args.slots % slots_per_thread;  // one by one
  add_loads(work.traffic, {rest * word_bytes, rest});
  add_stores(work.traffic, {blocks * word_bytes, blocks});
  work.unique_read = Bytes(args.slots * word_bytes);
  work.unique_write = Bytes(blocks * word_bytes);
  set_feedback(work, blocks);
  work.in_flight_per_block = Bytes(std::min(args.slots, slots_per_count) * word_bytes);
  issue_count_attended(args, work);
  return work;
}

Work declared_attention_feedback(const AttentionFeedbackArgs& args) {
  const std::int64_t blocks = blocks_for(args.tokens, feedback_threads);
  const std::int64_t counts = attended_counts(args.slots);
  Work work;
  work.traffic = sums_over_block(blocks);
  for (std::int64_t first = 0; first < counts; first += warp_lanes)
    add_loads(work.traffic, blocks * words(first, std::min(warp_lanes, counts - first)));
  if (args.tokens > 0) work.traffic += all_tokens(args);
  const std::int64_t lists = args.tokens > 0 ? args.slots + args.tokens + 1 : 0;
  work.unique_read = Bytes((2 * args.slots + lists + counts) * word_bytes);
  work.unique_write = Bytes(2 * args.slots * word_bytes);
  set_feedback(work, blocks);
  work.in_flight_per_block = Bytes(std::int64_t{feedback_threads} * 2 * word_bytes);
  issue_attention_feedback(args, work);
  return work;
}

}  // namespace indexpool::kernels
