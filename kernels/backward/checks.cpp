#include "indexpool/kernels/backward/checks.hpp"

#include <fmt/format.h>

#include "indexpool/kernels/policy/checks.hpp"
#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/refusal.hpp"

namespace indexpool::kernels {
namespace {

// Groups, gates and roles as the forward kernels take them.
Reason bad_groups(const GroupedVectors& grouped) {
  ChannelWeightsArgs forward;
  forward.grouped = grouped;
  return bad_channel_weights(forward);
}
Reason bad_gate(DType storage, std::int32_t head_dim, std::int32_t hidden, std::int32_t heads,
                const void* rows) {
  HiddenGatesArgs forward;
  forward.gate_weight = rows;
  forward.storage = storage;
  forward.head_dim = head_dim;
  forward.hidden = hidden;
  forward.heads = heads;
  return bad_hidden_gates(forward);
}

}  // namespace

Reason bad_pool_backward(const PoolBackwardArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (auto reason = misplaced("the gradients of pooled vectors", args.grad_pooled)) return reason;
  return misplaced("the gradients of vectors", args.grad_vectors);
}

Reason bad_channel_pool_backward(const ChannelPoolBackwardArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (args.norm_weight != nullptr && args.grad_norm == nullptr)
    return "pooled vectors were normed, but there is no room for the norm weights' gradients";
  if (args.norm_weight != nullptr &&
      (args.rope_dims < 0 || args.rope_dims > args.grouped.head_dim || args.rope_dims % 8 != 0))
    return fmt::format("rope_dims is {}; it must be a multiple of 8 up to {}", args.rope_dims,
                       args.grouped.head_dim);
  if (auto reason = misplaced("the pool weights", args.pool_weights)) return reason;
  if (auto reason = misplaced("the norm weights", args.norm_weight)) return reason;
  if (auto reason = misplaced("the rotations", args.rope)) return reason;
  if (auto reason = misplaced("the gradients of pooled vectors", args.grad_pooled)) return reason;
  if (auto reason = misplaced("the gradients of vectors", args.grad_vectors)) return reason;
  if (auto reason = misplaced("the gradients of norm weights", args.grad_norm)) return reason;
  return misplaced("the gradients of pool weights", args.grad_weights);
}

Reason bad_sum_rows(const SumRowsArgs& args) {
  if (args.width < 1) return fmt::format("rows of {} values; they must have some", args.width);
  if (args.host_first == nullptr && args.segments > 0)
    return "where segments start is not known on the host, which declared traffic needs";
  if (args.rows != nullptr && args.host_rows == nullptr)
    return "the list of rows is not known on the host, which declared traffic needs";
  if (auto reason = misplaced("the rows to sum", args.values)) return reason;
  return misplaced("the sums", args.sums);
}

Reason bad_channel_softmax_backward(const ChannelSoftmaxBackwardArgs& args) {
  GroupedVectors grouped;
  grouped.head_dim = args.head_dim;
  grouped.index_kpool = args.index_kpool;
  if (auto reason = bad_groups(grouped)) return reason;
  if (auto reason = misplaced("the pool weights", args.pool_weights)) return reason;
  if (auto reason = misplaced("the gradients of pool weights", args.grad_weights)) return reason;
  return misplaced("the gradients of gate scores", args.grad_scores);
}

Reason bad_role_softmax_backward(const RoleSoftmaxBackwardArgs& args) {
  RoleWeightsArgs forward;
  forward.index_kpool = args.index_kpool;
  return bad_role_weights(forward);
}

Reason bad_gate_backward(const GateBackwardArgs& args) {
  const GroupedVectors& grouped = args.grouped;
  if (auto reason = bad_groups(grouped)) return reason;
  if (auto reason =
          bad_gate(grouped.storage, grouped.head_dim, args.hidden, args.heads, args.gate_weight))
    return reason;
  if (auto reason = misplaced("the gradients of vectors", args.held_vectors)) return reason;
  if (auto reason = misplaced("the gradients of vectors", args.grad_vectors)) return reason;
  return misplaced("the gradients of gates", args.grad_gate);
}

Reason bad_hidden_states_backward(const HiddenStatesBackwardArgs& args) {
  if (auto reason =
          bad_gate(args.storage, args.head_dim, args.hidden, args.heads, args.gate_weight))
    return reason;
  return misplaced("the gradients of hidden states", args.grad_hidden_states);
}

Reason bad_hidden_gate_backward(const HiddenGateBackwardArgs& args) {
  if (auto reason =
          bad_gate(args.storage, smallest_policy_dim, args.hidden, args.heads, args.hidden_states))
    return reason;
  return misplaced("the gradients of gates", args.grad_gate);
}

Reason bad_cosine_backward(const CosineBackwardArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (auto reason = misplaced("the queries", args.queries)) return reason;
  if (auto reason = misplaced("the gradients of vectors", args.held_vectors)) return reason;
  if (auto reason = misplaced("the gradients of vectors", args.grad_vectors)) return reason;
  return misplaced("the gradients of queries", args.grad_queries);
}

Reason bad_additive_terms_backward(const AdditiveTermsBackwardArgs& args) {
  AdditiveWeightsArgs forward;
  forward.grouped.index_kpool = args.index_kpool;
  forward.sigma = args.sigma;
  forward.tau = args.tau;
  return bad_additive_weights(forward);
}

Reason bad_tfidf_terms_backward(const TfidfTermsBackwardArgs& args) {
  TfidfWeightsArgs forward;
  forward.grouped = args.grouped;
  forward.all_groups = args.all_groups;
  return bad_tfidf_weights(forward);
}

}  // namespace indexpool::kernels
