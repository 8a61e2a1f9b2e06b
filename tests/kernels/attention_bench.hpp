// Operands of the attention kernels in a target's memory, and what a launch left. Every launch is
// checked: declared traffic equals counted, guards intact, unwritten elements stay NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/attention.hpp"

namespace indexpool::kernels {

struct LinearRun {
  std::vector<std::vector<float>> outputs, states;  // of each sequence [T, H, V], [H, K, V]
  bool operator==(const LinearRun& other) const;    // bytes
};
// Sequences back to back in one launch, their states in reverse order.
LinearRun run_linear(const std::vector<LinearAttentionInputs>& sequences, bool chunked,
                     Target& target);
std::vector<float> run_sparse(const SparseAttentionInputs& inputs, Target& target);
std::vector<float> run_fusion(const GateFusionInputs& inputs, Target& target);
std::vector<float> run_safe_gate(const SafeGateInputs& inputs, Target& target);

// On an executor of their own.
inline LinearRun run_linear(const std::vector<LinearAttentionInputs>& sequences, bool chunked,
                            sim::simt::Options options = {}) {
  return run_linear(sequences, chunked, *make_simt_target(std::move(options)));
}
inline std::vector<float> run_sparse(const SparseAttentionInputs& inputs,
                                     sim::simt::Options options = {}) {
  return run_sparse(inputs, *make_simt_target(std::move(options)));
}
inline std::vector<float> run_fusion(const GateFusionInputs& inputs,
                                     sim::simt::Options options = {}) {
  return run_fusion(inputs, *make_simt_target(std::move(options)));
}
inline std::vector<float> run_safe_gate(const SafeGateInputs& inputs,
                                        sim::simt::Options options = {}) {
  return run_safe_gate(inputs, *make_simt_target(std::move(options)));
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b);

// The three orders in which the executor runs lanes.
std::vector<sim::simt::Options> lane_orders();

// Random operands.
struct LinearDraw {
  std::int64_t tokens = 5, heads = 2, keys = 32, values = 32;
  DType storage = DType::bf16;
  double decay = 0.3;
  std::uint64_t seed = 1;
};
LinearAttentionInputs random_linear(const LinearDraw& draw);
// Tokens [begin, end) of the sequence, from the same state.
LinearAttentionInputs tokens_of(const LinearAttentionInputs& inputs, std::int64_t begin,
                                std::int64_t end);
// A random tensor of normal numbers, and a selection of up to `most` distinct tokens in each row.
Tensor normal_tensor(DType dtype, indexpool::Shape shape, double spread, std::uint64_t seed);
Tensor random_selection(std::int64_t rows, std::int64_t width, std::int64_t most,
                        std::int64_t tokens, std::uint64_t seed);

// Both launches; the scale is head_dim^-0.5 unless another is asked for.
std::vector<float> run_composite(const CompositeAttentionInputs& inputs, Target& target,
                                 std::optional<float> scale = {});
struct FeedbackRun {
  std::vector<std::int32_t> next_accesses, groups_accessed;  // [G, m]
  bool operator==(const FeedbackRun&) const = default;
};
FeedbackRun run_feedback(const FeedbackInputs& inputs, const AccessTerms& terms, Target& target);
inline std::vector<float> run_composite(const CompositeAttentionInputs& inputs,
                                        sim::simt::Options options = {}) {
  return run_composite(inputs, *make_simt_target(std::move(options)));
}
inline FeedbackRun run_feedback(const FeedbackInputs& inputs, const AccessTerms& terms,
                                sim::simt::Options options = {}) {
  return run_feedback(inputs, terms, *make_simt_target(std::move(options)));
}

}  // namespace indexpool::kernels
