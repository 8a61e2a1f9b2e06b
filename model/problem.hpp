// One point of a suite: small, comparable, and printable as the command line that repeats it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool {

inline constexpr std::string_view shipped_policy = "kpool";

enum class Op {
  project,
  pool,
  append,
  quantize_query,
  logits,
  topk,
  pool_weights,
  // The backward pass of a published form of pooling.
  pool_backward,
  // Of the attention around the pooling (attention.hpp).
  safe_gate,
  linear_attention,
  sparse_attention,
  gate_fusion,
  composite_attention,
  attention_feedback
};
std::string_view to_string(Op op);

// How tokens enter the cache: `prefill_chunk` tokens at a time up to `prefill_tokens`, then decode
// steps of 1 + drafts tokens of which 1 + accepted stay (accepted drawn from the seed).
struct Schedule {
  std::int64_t prefill_tokens = -1;  // -1: all
  std::int64_t prefill_chunk = 0;    // 0: in one shot
  std::int64_t drafts = 0;           // speculative drafts per decode step, 0 to 6
  bool operator==(const Schedule&) const = default;
};

// An `attention` (attention.hpp) is a problem by itself too: lengths tokens of index_n_heads heads
// of index_head_dim channels, in f32, f16 or bf16. A policy other than kpool (policy.hpp) is a
// pooling operation by itself: groups of index_kpool vectors of index_head_dim channels, a mode of
// pooling_modes(); topk, schedule and pages stay at their defaults.
struct Problem {
  IndexerConfig indexer;
  std::string policy{shipped_policy};
  std::string attention;  // empty: the indexer, or the policy
  std::string mode = "vllm_fp8";
  std::vector<std::int64_t> lengths = {259};  // tokens of each sequence
  Schedule schedule;
  std::int64_t states_per_page = 64;
  std::string fill = "normal";
  std::uint64_t seed = 1;

  bool operator==(const Problem&) const = default;
};
void validate(const Problem& problem, std::string_view where);
std::string describe(
    const Problem& problem);  // "glm 32x128 kpool 4 topk 2048, 1 x 259 tokens, ..."
std::string repeat_line(
    const Problem& problem);  // "indexpool verify --mode vllm_fp8 --lengths 259 ..."

// A suite file: axes whose cartesian product gives Problems.
struct Suite {
  std::string name, why;
  std::vector<Problem> problems;
};
// Strict JSON; each case's axes are lists. `text` is the file's content, `where` its name.
Suite parse_suite(std::string_view text, std::string_view where);

}  // namespace indexpool
