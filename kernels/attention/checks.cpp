#include "indexpool/kernels/attention/checks.hpp"

#include <fmt/format.h>

#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/attention/geometry.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

using Reason = std::optional<std::string>;

// Rows that start inside a sector would cost other sectors than declared.
Reason misplaced(const char* what, const void* address) {
  const std::int64_t beyond = address_of(address) % sector_bytes;
  if (beyond == 0) return std::nullopt;
  return fmt::format("{} start {} bytes past a multiple of {}; align them", what, beyond,
                     sector_bytes);
}

Reason bad_storage(DType storage) {
  if (storage == DType::f32 || storage == DType::f16 || storage == DType::bf16) return std::nullopt;
  return fmt::format("rows are stored as {}; these kernels read f32, f16 and bf16",
                     info(storage).name);
}

Reason bad_dim(const char* what, std::int64_t dim) {
  if (dim == 32 || dim == 64 || dim == 128) return std::nullopt;
  return fmt::format("{} is {}; it must be 32, 64 or 128", what, dim);
}

Reason bad_multiple(const char* what, std::int64_t dim, std::int64_t of) {
  if (dim >= of && dim % of == 0) return std::nullopt;
  return fmt::format("{} is {}; it must be a multiple of {}", what, dim, of);
}

Reason bad_heads(std::int64_t heads) {
  if (heads >= 1) return std::nullopt;
  return fmt::format("{} heads; it takes at least 1", heads);
}

}  // namespace

Reason bad_safe_gate(const SafeGateArgs& args) {
  if (auto reason = bad_storage(args.storage)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_multiple("key_dim", args.key_dim, channels_per_lane)) return reason;
  if (auto reason = misplaced("the features", args.features)) return reason;
  if (auto reason = misplaced("the steepnesses a_log", args.a_log)) return reason;
  if (auto reason = misplaced("the biases", args.dt_bias)) return reason;
  return misplaced("the log decays", args.log_decay);
}

Reason bad_linear(const LinearAttentionArgs& args) {
  if (auto reason = bad_storage(args.storage)) return reason;
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_dim("key_dim", args.key_dim)) return reason;
  if (auto reason = bad_dim("value_dim", args.value_dim)) return reason;
  const std::pair<const char*, const void*> rows[] = {
      {"the queries", args.queries},     {"the keys", args.keys},
      {"the values", args.values},       {"the log decays", args.log_decay},
      {"the states", args.states},       {"the outputs", args.outputs},
      {"the sequences", args.sequences}, {"the betas", args.beta}};
  for (const auto& [what, address] : rows) {
    if (auto reason = misplaced(what, address)) return reason;
  }
  return std::nullopt;
}

Reason bad_sparse(const SparseAttentionArgs& args) {
  if (auto reason = bad_storage(args.storage)) return reason;
  if (auto reason = bad_dim("head_dim", args.head_dim)) return reason;
  if (auto reason = bad_dim("value_dim", args.value_dim)) return reason;
  if (args.key_heads < 1 || args.heads < 1 || args.heads % args.key_heads != 0)
    return fmt::format("{} key heads for {} heads; it must divide them", args.key_heads,
                       args.heads);
  if (args.width < 1 || args.width > most_selected)
    return fmt::format("a selection of {} tokens; it takes 1 to {}", args.width, most_selected);
  const std::pair<const char*, const void*> rows[] = {{"the queries", args.queries},
                                                      {"the keys", args.keys},
                                                      {"the values", args.values},
                                                      {"the selection", args.selection},
                                                      {"the outputs", args.outputs}};
  for (const auto& [what, address] : rows) {
    if (auto reason = misplaced(what, address)) return reason;
  }
  return std::nullopt;
}

Reason bad_fusion(const GateFusionArgs& args) {
  if (auto reason = bad_heads(args.heads)) return reason;
  if (auto reason = bad_multiple("value_dim", args.value_dim, fusion_channels)) return reason;
  if (auto reason = misplaced("the gate logits", args.gate_logits)) return reason;
  if (auto reason = misplaced("branch a", args.a)) return reason;
  if (auto reason = misplaced("branch b", args.b)) return reason;
  return misplaced("the outputs", args.outputs);
}

}  // namespace indexpool::kernels
