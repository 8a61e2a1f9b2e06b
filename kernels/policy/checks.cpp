#include "indexpool/kernels/policy/checks.hpp"

#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/refusal.hpp"

namespace indexpool::kernels {
namespace {

Reason bad_index_kpool(std::int64_t index_kpool) {
  if (index_kpool >= 1 && index_kpool <= most_pooled_vectors) return std::nullopt;
  return fmt::format("index_kpool is {}; groups have 1 to {} vectors", index_kpool,
                     most_pooled_vectors);
}

Reason bad_head_dim(std::int64_t head_dim) {
  if (head_dim >= smallest_policy_dim && head_dim <= largest_policy_dim &&
      std::has_single_bit(static_cast<std::uint64_t>(head_dim)))
    return std::nullopt;
  return fmt::format("head_dim is {}; it must be a power of two from {} to {}", head_dim,
                     smallest_policy_dim, largest_policy_dim);
}

Reason bad_groups(const GroupedVectors& grouped) {
  if (auto reason = bad_head_dim(grouped.head_dim)) return reason;
  if (auto reason = bad_index_kpool(grouped.index_kpool)) return reason;
  if (auto reason = bad_storage("vectors", grouped.storage)) return reason;
  if (auto reason = misplaced("the vectors", grouped.vectors)) return reason;
  return misplaced("the groups", grouped.groups);
}

Reason bad_gate(std::int64_t hidden, std::int64_t heads, const void* gate_weight) {
  if (hidden < 16 || hidden % 16 != 0)
    return fmt::format("the hidden state has {} channels; it must be a multiple of 16", hidden);
  if (heads < 1 || heads > most_gate_heads)
    return fmt::format("{} heads; a gate has 1 to {}", heads, most_gate_heads);
  return misplaced("the rows of gate_weight", gate_weight);
}

Reason bad_numeric_mode(const NumericMode& mode) {
  const bool elements =
      mode.cache == DType::f32 || mode.cache == DType::f16 || mode.cache == DType::bf16;
  const bool codes = mode.cache == DType::e4m3 || mode.cache == DType::i8;
  const bool power_of_two_codes =
      mode.scale != ScaleRule::power_of_two || mode.cache == DType::e4m3;
  if (mode.pool_rounding != PoolRounding::f32_accumulate)
    return fmt::format("numeric mode \"{}\" rounds each product; weighted sums are made in f32",
                       mode.name);
  if (mode.hadamard)
    return fmt::format("numeric mode \"{}\" rotates by a Hadamard matrix; published forms do not",
                       mode.name);
  if ((mode.quantised() ? codes : elements) && power_of_two_codes)
    return bad_storage("vectors", mode.pooled);
  return fmt::format(
      "numeric mode \"{}\" stores {} {}; pooled vectors are f32, f16 or bf16, or e4m3 with any "
      "scale, or i8 with a scale by amax",
      mode.name, info(mode.cache).name, mode.quantised() ? "with a scale" : "without a scale");
}

}  // namespace

Reason bad_role_weights(const RoleWeightsArgs& args) { return bad_index_kpool(args.index_kpool); }

Reason bad_additive_weights(const AdditiveWeightsArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (!(args.sigma > 0) || !(args.tau > 0))
    return fmt::format("sigma is {} and tau {}; both must be above 0", args.sigma, args.tau);
  return misplaced("the queries", args.queries);
}

Reason bad_tfidf_weights(const TfidfWeightsArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (args.all_groups < 0)
    return fmt::format("{} groups in all; it must not be negative", args.all_groups);
  return misplaced("the queries", args.queries);
}

Reason bad_hidden_gates(const HiddenGatesArgs& args) {
  if (auto reason = bad_storage("vectors", args.storage)) return reason;
  if (auto reason = bad_head_dim(args.head_dim)) return reason;
  if (auto reason = bad_gate(args.hidden, args.heads, args.gate_weight)) return reason;
  return misplaced("the hidden states", args.hidden_states);
}

Reason bad_gated_weights(const GatedWeightsArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  return bad_gate(args.hidden, args.heads, args.gate_weight);
}

Reason bad_channel_weights(const ChannelWeightsArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (auto reason = misplaced("the gate scores", args.gate_scores)) return reason;
  if (auto reason = misplaced("the position biases", args.position_bias)) return reason;
  return misplaced("the pool weights", args.pool_weights);
}

Reason bad_weighted_pool(const WeightedPoolArgs& args) {
  if (auto reason = bad_groups(args.grouped)) return reason;
  if (auto reason = bad_numeric_mode(args.mode)) return reason;
  if (args.mode.storage != args.grouped.storage)
    return fmt::format("numeric mode \"{}\" stores vectors as {}, but they come as {}",
                       args.mode.name, info(args.mode.storage).name,
                       info(args.grouped.storage).name);
  if (args.divide && args.per_channel)
    return "it divides by the sum of one weight per vector; weights per channel are normalised";
  if (args.norm_weight != nullptr &&
      (args.rope_dims < 0 || args.rope_dims > args.grouped.head_dim || args.rope_dims % 8 != 0))
    return fmt::format("rope_dims is {}; it must be a multiple of 8 up to {}", args.rope_dims,
                       args.grouped.head_dim);
  if (args.per_channel)
    if (auto reason = misplaced("the pool weights", args.pool_weights)) return reason;
  if (auto reason = misplaced("the norm weights", args.norm_weight)) return reason;
  if (auto reason = misplaced("the rotations", args.rope)) return reason;
  return misplaced("the pooled vectors", args.pooled);
}

Reason bad_block_max(const BlockMaxArgs& args) {
  const bool one_load_a_lane = args.block <= block_max_step && args.block % 4 == 0;
  if (args.block < 4 || (!one_load_a_lane && args.block % block_max_step != 0))
    return fmt::format("a block of {} scores; it must be a multiple of 4 up to {}, or of {}",
                       args.block, block_max_step, block_max_step);
  if (args.stride % 4 != 0 || args.stride < args.tokens)
    return fmt::format("rows of {} scores lie {} apart; it must be a multiple of 4 and no less",
                       args.tokens, args.stride);
  return misplaced("the scores", args.scores);
}

}  // namespace indexpool::kernels
