#include "indexpool/kernels/attention/checks.hpp"

#include <initializer_list>
#include <limits>

#include <fmt/format.h>

#include "indexpool/kernels/attention/geometry.hpp"
#include "indexpool/kernels/refusal.hpp"

namespace indexpool::kernels {
namespace {

Reason bad_dim(const char* what, std::int64_t dim) {
  if (dim == 32 || dim == 64 || dim == 128) return std::nullopt;
  return fmt::format("{} is {}; it must be 32, 64 or 128", what, dim);
}

struct Place {
  const char* what;
  const void* address;
};
Reason any_misplaced(std::initializer_list<Place> places) {
  for (const auto& [what, address] : places) {
    if (auto reason = misplaced(what, address)) return reason;
  }
  return std::nullopt;
}

Reason bad_multiple(const char* what, std::int64_t dim, std::int64_t of) {
  if (dim >= of && dim % of == 0) return std::nullopt;
  return fmt::format("{} is {}; it must be a multiple of {}", what, dim, of);
}

Reason bad_heads(std::int64_t heads) {
  if (heads >= 1) return std::nullopt;
  return fmt::format("{} heads; it takes at least 1", heads);
}

Reason bad_tokens(std::int64_t tokens) {
  if (tokens >= 0) return std::nullopt;
  return fmt::format("{} tokens; it takes 0 or more", tokens);
}

Reason bad_slots(std::int64_t slots) {
  if (slots >= 0 && slots <= std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return fmt::format("{} slots; it takes 0 to {}", slots, std::numeric_limits<std::int32_t>::max());
}

}  // namespace

Reason bad_safe_gate(const SafeGateArgs& args) {
  if (auto reason = bad_storage("rows", args.storage)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_multiple("key_dim", args.key_dim, channels_per_lane)) return reason;
  if (auto reason = misplaced("the features", args.features)) return reason;
  if (auto reason = misplaced("the steepnesses a_log", args.a_log)) return reason;
  if (auto reason = misplaced("the biases", args.dt_bias)) return reason;
  return misplaced("the log decays", args.log_decay);
}

Reason bad_linear(const LinearAttentionArgs& args) {
  if (auto reason = bad_storage("rows", args.storage)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_dim("key_dim", args.key_dim)) return reason;
  if (auto reason = bad_dim("value_dim", args.value_dim)) return reason;
  return any_misplaced({{"the queries", args.queries},
                        {"the keys", args.keys},
                        {"the values", args.values},
                        {"the log decays", args.log_decay},
                        {"the states", args.states},
                        {"the outputs", args.outputs},
                        {"the sequences", args.sequences},
                        {"the betas", args.beta}});
}

Reason bad_sparse(const SparseAttentionArgs& args) {
  if (auto reason = bad_storage("rows", args.storage)) return reason;
  if (auto reason = bad_dim("head_dim", args.head_dim)) return reason;
  if (auto reason = bad_dim("value_dim", args.value_dim)) return reason;
  if (args.key_heads < 1 || args.heads < 1 || args.heads % args.key_heads != 0)
    return fmt::format("{} key heads for {} heads; it must divide them", args.key_heads,
                       args.heads);
  if (args.width < 1 || args.width > most_selected)
    return fmt::format("a selection of {} tokens; it takes 1 to {}", args.width, most_selected);
  return any_misplaced({{"the queries", args.queries},
                        {"the keys", args.keys},
                        {"the values", args.values},
                        {"the selection", args.selection},
                        {"the outputs", args.outputs}});
}

Reason bad_fusion(const GateFusionArgs& args) {
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_multiple("value_dim", args.value_dim, fusion_channels)) return reason;
  if (auto reason = misplaced("the gate logits", args.gate_logits)) return reason;
  if (auto reason = misplaced("branch a", args.a)) return reason;
  if (auto reason = misplaced("branch b", args.b)) return reason;
  return misplaced("the outputs", args.outputs);
}

Reason bad_decompress(const DecompressArgs& args) {
  if (auto reason = bad_storage("rows", args.storage)) return reason;
  if (auto reason = bad_tokens(args.tokens)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_dim("head_dim", args.head_dim)) return reason;
  return any_misplaced({{"the composites", args.composites},
                        {"the weights of queries", args.query_weight},
                        {"the weights of keys", args.key_weight},
                        {"the queries", args.queries},
                        {"the keys", args.keys}});
}

Reason bad_composite(const CompositeAttentionArgs& args) {
  if (auto reason = bad_storage("values", args.storage)) return reason;
  if (auto reason = bad_tokens(args.tokens)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_dim("head_dim", args.head_dim)) return reason;
  return any_misplaced({{"the queries", args.queries},
                        {"the keys", args.keys},
                        {"the values", args.values},
                        {"the outputs", args.outputs}});
}

Reason bad_count_attended(const CountAttendedArgs& args) {
  if (auto reason = bad_slots(args.slots)) return reason;
  return any_misplaced({{"the masses", args.attention_mass}, {"the counts", args.counts}});
}

Reason bad_feedback(const AttentionFeedbackArgs& args) {
  if (auto reason = bad_slots(args.slots)) return reason;
  if (args.tokens < 0 || args.tokens > args.slots || (args.tokens == 0 && args.slots > 0))
    return fmt::format("{} tokens hold {} slots; each holds at least one, each slot lies in one",
                       args.tokens, args.slots);
  if (args.index_kpool < 1)
    return fmt::format("index_kpool is {}; a group has at least 1 slot", args.index_kpool);
  return any_misplaced({{"the masses", args.attention_mass},
                        {"the counts", args.counts},
                        {"the accesses", args.accesses},
                        {"the slots of tokens", args.token_slots},
                        {"the first slots", args.first_slot},
                        {"the next accesses", args.next_accesses},
                        {"the groups accessed", args.groups_accessed}});
}

}  // namespace indexpool::kernels
