// attention_feedback: from one step's attention mass to the access counts of the next (article D,
// model/attention.hpp): exact, in any order.
//
//   next_accesses[s] = accesses[s] + (attention_mass[s] * attended > 1), at most most_accesses
//   groups_accessed[s] = groups with an accessed slot (next_accesses > 0) of the token of s
//
// All [slots]; token_slots [slots] and first_slot [tokens + 1] list the slots of each token in
// ascending order (token_slots.hpp). A thread goes through a token's slots twice: to count, where a
// group is new when the accessed slot before lay in another, then to write the number of groups.
// Only this thread touches them. A warp takes as long as its longest token. Bytes per slot: its
// number twice, mass and count in, two counts out; per block up to 1 KB of counts of
// count_attended.
#pragma once

#include "indexpool/kernels/attention/exceeds_mean.cuh"
#include "indexpool/kernels/attention/feedback.cuh"
#include "indexpool/model/attention.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct FeedbackParams {
  const float* attention_mass;
  const std::int32_t* counts;
  const std::int32_t* accesses;
  const std::int32_t* token_slots;
  const std::int32_t* first_slot;
  std::int64_t tokens;
  std::int32_t count_blocks, index_kpool;
  std::int32_t* next_accesses;
  std::int32_t* groups_accessed;
};

// The slot's count after the step.
IP_DEVICE std::int32_t count_access(const FeedbackParams& p, std::int32_t slot,
                                    std::uint32_t attended) {
  const float mass = ip::load_global(p.attention_mass + slot);
  std::int32_t accesses = ip::load_global(p.accesses + slot);
  if (accesses < most_accesses && exceeds_mean(mass, attended)) ++accesses;
  ip::store_global(p.next_accesses + slot, accesses);
  return accesses;
}

IP_KERNEL(feedback_threads, feedback_blocks_per_sm)
void attention_feedback_kernel(FeedbackParams p) {
  const int thread = ip::thread_index();
  const std::int32_t share = thread < p.count_blocks ? ip::load_global(p.counts + thread) : 0;
  const std::uint32_t attended = sum_over_block(static_cast<std::uint32_t>(share));
  const std::int64_t token = ip::block_index() * feedback_threads + thread;
  if (token >= p.tokens) return;
  const std::int32_t begin = ip::load_global(p.first_slot + token);
  const std::int32_t end = ip::load_global(p.first_slot + token + 1);
  std::int32_t groups = 0, last = -1;
  for (std::int32_t i = begin; i < end; ++i) {
    const std::int32_t slot = ip::load_global(p.token_slots + i);
    if (count_access(p, slot, attended) == 0) continue;
    const std::int32_t group = slot / p.index_kpool;
    if (group != last) ++groups;
    last = group;
  }
  for (std::int32_t i = begin; i < end; ++i)
    ip::store_global(p.groups_accessed + ip::load_global(p.token_slots + i), groups);
}

inline std::optional<std::string> attention_feedback_unsupported(const OpArgs& any) {
  const auto* args = attention_args<AttentionFeedbackArgs>(any);
  if (args == nullptr) return "it feeds attention back into access counts";
  return bad_feedback(*args);
}

inline void attention_feedback_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<AttentionFeedbackArgs>(any);
  const FeedbackParams params = {args.attention_mass,
                                 args.counts,
                                 args.accesses,
                                 args.token_slots,
                                 args.first_slot,
                                 args.tokens,
                                 static_cast<std::int32_t>(attended_counts(args.slots)),
                                 args.index_kpool,
                                 args.next_accesses,
                                 args.groups_accessed};
  ip_launch(context, blocks_for(args.tokens, feedback_threads), feedback_threads,
            feedback_shared_bytes, attention_feedback_kernel, params);
}

inline Work attention_feedback_work(const OpArgs& any) {
  return declared_attention_feedback(the_attention_args<AttentionFeedbackArgs>(any));
}

extern const Kernel attention_feedback;
const Kernel attention_feedback = {"attention_feedback", INDEXPOOL_TARGET_NAME,
                                   attention_feedback_unsupported, attention_feedback_launch,
                                   attention_feedback_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
