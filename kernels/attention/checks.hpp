// Why an attention kernel does not take some arguments, in words; empty when it does.
#pragma once

#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// The arguments of one of these kernels; null when they are another's.
template <class Args>
const Args* attention_args(const OpArgs& any) {
  const auto* attention = std::get_if<AttentionArgs>(&any);
  return attention == nullptr ? nullptr : std::get_if<Args>(attention);
}
template <class Args>
const Args& the_attention_args(const OpArgs& any) {
  return std::get<Args>(std::get<AttentionArgs>(any));
}

std::optional<std::string> bad_safe_gate(const SafeGateArgs& args);
std::optional<std::string> bad_linear(const LinearAttentionArgs& args);
std::optional<std::string> bad_sparse(const SparseAttentionArgs& args);
std::optional<std::string> bad_fusion(const GateFusionArgs& args);
std::optional<std::string> bad_decompress(const DecompressArgs& args);
std::optional<std::string> bad_composite(const CompositeAttentionArgs& args);
std::optional<std::string> bad_count_attended(const CountAttendedArgs& args);
std::optional<std::string> bad_feedback(const AttentionFeedbackArgs& args);

}  // namespace indexpool::kernels
