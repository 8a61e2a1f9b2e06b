#include "indexpool/model/problem.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t most_drafts = 6;  // as verified: 0 to 6 speculative drafts

void require_at_least(std::int64_t value, std::int64_t least, const char* key,
                      std::string_view where) {
  if (value < least) {
    throw ConfigError(
        fmt::format("{}/{}: found {}, expected at least {}", where, key, value, least));
  }
}

// Selected positions are 32-bit in the indexer's output.
constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();

void validate_lengths(const Problem& problem, std::string_view where) {
  if (problem.lengths.empty()) {
    throw ConfigError(
        fmt::format("{}/lengths: found no sequence, expected the tokens of at least one", where));
  }
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < problem.lengths.size(); ++i) {
    const std::int64_t length = problem.lengths[i];
    if (length < 0 || length > most_tokens) {
      throw ConfigError(fmt::format("{}/lengths/{}: found {} tokens, expected 0 to {}", where, i,
                                    length, most_tokens));
    }
    rows = checked_sum(rows, length, "sum of lengths");
  }
  if (rows == 0) {
    throw ConfigError(
        fmt::format("{}/lengths: every sequence has 0 tokens, expected at least one token", where));
  }
  const IndexerConfig& indexer = problem.indexer;
  try {  // the largest tensor a case holds: queries [N, H, D], at most 4 bytes an element
    const std::int64_t row_bytes = indexer.index_n_heads * indexer.index_head_dim * 4;
    checked_product(rows, row_bytes, "tokens * index_n_heads * index_head_dim * 4 bytes");
    checked_product(rows, indexer.selection_width() * 4, "tokens * selected positions * 4 bytes");
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}/lengths: {}", where, error.what()));
  }
}

// Counts equal lengths: "3 x 259", "1 x 5 + 2 x 64".
std::string describe_lengths(const std::vector<std::int64_t>& lengths) {
  constexpr std::size_t most_groups = 4;
  std::string text;
  std::size_t groups = 0;
  for (std::size_t begin = 0; begin < lengths.size();) {
    std::size_t end = begin;
    while (end < lengths.size() && lengths[end] == lengths[begin]) ++end;
    if (++groups > most_groups) {
      return fmt::format("{} + {} more", text, lengths.size() - begin);
    }
    text += fmt::format("{}{} x {}", groups == 1 ? "" : " + ", end - begin, lengths[begin]);
    begin = end;
  }
  return text;
}

std::string describe_policy(const Problem& problem) {
  const IndexerConfig& indexer = problem.indexer;
  return fmt::format("{} {} {}x{} kpool {}, {} tokens, fill {}, seed {}", problem.policy,
                     problem.mode, indexer.index_n_heads, indexer.index_head_dim,
                     indexer.index_kpool, describe_lengths(problem.lengths), problem.fill,
                     problem.seed);
}

// A published form stands alone: what belongs to the shipped indexer must not be asked of it.
void validate_policy(const Problem& problem, std::string_view where) {
  const auto refuse = [&](const char* key, const auto& found, const std::string& expected) {
    throw ConfigError(fmt::format("{}/{}: found {}, expected {} (policy {})", where, key, found,
                                  expected, problem.policy));
  };
  const auto named = [&](const char* key, const auto& lookup) -> const auto& {
    try {
      return lookup();
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}/{}: {}", where, key, error.what()));
    }
  };
  const PolicyInfo& policy =
      named("policy", [&]() -> const PolicyInfo& { return find_policy(problem.policy); });
  const NumericMode& mode =
      named("mode", [&]() -> const NumericMode& { return pooling_mode(problem.mode); });
  const std::int64_t dim = problem.indexer.index_head_dim, kpool = problem.indexer.index_kpool;
  if (policy.grouping == Grouping::scores) {
    if (mode.name != "f32") refuse("mode", mode.name, "f32: it takes scores");
    if (kpool % 4 != 0) refuse("kpool", kpool, "a multiple of 4");
  } else {
    if (dim < 32 || dim > 2048 || !std::has_single_bit(static_cast<std::uint64_t>(dim)))
      refuse("head_dim", dim, "a power of two from 32 to 2048");
    if (kpool > most_pooled_vectors) refuse("kpool", kpool, "at most 16");
    if (policy.grouping == Grouping::windows && kpool % 2 != 0)
      refuse("kpool", kpool, "an even number: two windows");
  }
  if (problem.schedule != Schedule{}) refuse("prefill", "a schedule", "none: there is no decode");
  if (problem.states_per_page != Problem{}.states_per_page)
    refuse("page", problem.states_per_page, "none: there is no paged cache");
}

// Where not, index_topk is what the command line makes of index_kpool. The name may be unknown.
bool reads_topk(const Problem& problem) {
  if (problem.attention.empty()) return problem.policy == shipped_policy;
  const auto& layers = attention_layers();
  return std::any_of(layers.begin(), layers.end(), [&](const AttentionLayer& layer) {
    return layer.selects && layer.name == problem.attention;
  });
}

std::string describe_attention(const Problem& problem) {
  const IndexerConfig& indexer = problem.indexer;
  return fmt::format(
      "{} {} {}x{} kpool {}{}, {} tokens, fill {}, seed {}", problem.attention, problem.mode,
      indexer.index_n_heads, indexer.index_head_dim, indexer.index_kpool,
      reads_topk(problem) ? fmt::format(" topk {}{}", indexer.index_topk,
                                        indexer.index_kpool_always_select_tail ? "" : " no tail")
                          : "",
      describe_lengths(problem.lengths), problem.fill, problem.seed);
}

// A layer of attention stands alone: neither the indexer's cache nor a policy is asked of it.
void validate_attention(const Problem& problem, std::string_view where) {
  const auto refuse = [&](const char* key, const auto& found, const std::string& expected) {
    throw ConfigError(fmt::format("{}/{}: found {}, expected {} (attention {})", where, key, found,
                                  expected, problem.attention));
  };
  const auto known = [&](const char* key, const auto& lookup) {
    try {
      lookup();
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}/{}: {}", where, key, error.what()));
    }
  };
  known("attention", [&] { find_attention_layer(problem.attention); });
  known("mode", [&] { attention_mode(problem.mode); });
  const AttentionLayer& layer = find_attention_layer(problem.attention);
  const IndexerConfig& indexer = problem.indexer;
  const auto& dims = attention_head_dims;
  if (std::find(std::begin(dims), std::end(dims), indexer.index_head_dim) == std::end(dims))
    refuse("head_dim", indexer.index_head_dim, "32, 64 or 128");
  if (indexer.index_kpool > most_pooled_vectors) refuse("kpool", indexer.index_kpool, "at most 16");
  if (layer.selects && indexer.selection_width() > most_attention_selection)
    refuse("topk", indexer.index_topk,
           fmt::format("at most {} selected tokens, tail included", most_attention_selection));
  if (problem.policy != shipped_policy)
    refuse("policy", problem.policy, "none: attention is a problem by itself");
  if (problem.schedule != Schedule{}) refuse("prefill", "a schedule", "none: there is no decode");
  if (problem.states_per_page != Problem{}.states_per_page)
    refuse("page", problem.states_per_page, "none: there is no paged cache");
}

void validate_mode(const Problem& problem, std::string_view where) {
  bool rotates = false;
  try {
    rotates = numeric_mode(problem.mode).hadamard;
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}/mode: {}", where, error.what()));
  }
  const std::int64_t dim = problem.indexer.index_head_dim;
  if (rotates && !std::has_single_bit(static_cast<std::uint64_t>(dim))) {
    throw ConfigError(
        fmt::format("{}/index_head_dim: found {}, expected a power of two: the keys of mode {} "
                    "pass a Hadamard transform",
                    where, dim, problem.mode));
  }
}

}  // namespace

std::string_view to_string(Op op) {
  switch (op) {
    case Op::project:
      return "project";
    case Op::pool:
      return "pool";
    case Op::append:
      return "append";
    case Op::quantize_query:
      return "quantize_query";
    case Op::logits:
      return "logits";
    case Op::topk:
      return "topk";
    case Op::pool_weights:
      return "pool_weights";
    case Op::pool_backward:
      return "pool_backward";
    case Op::safe_gate:
      return "safe_gate";
    case Op::linear_attention:
      return "linear_attention";
    case Op::sparse_attention:
      return "sparse_attention";
    case Op::gate_fusion:
      return "gate_fusion";
    case Op::composite_attention:
      return "composite_attention";
    case Op::attention_feedback:
      return "attention_feedback";
  }
  throw InternalError("an Op outside its enumeration");
}

void validate(const Problem& problem, std::string_view where) {
  validate(problem.indexer, where);
  if (!problem.attention.empty()) {
    validate_attention(problem, where);
  } else if (problem.policy == shipped_policy) {
    validate_mode(problem, where);
  } else {
    validate_policy(problem, where);
  }
  const Schedule& schedule = problem.schedule;
  require_at_least(schedule.prefill_tokens, -1, "prefill", where);
  require_at_least(schedule.prefill_chunk, 0, "chunk", where);
  require_at_least(schedule.drafts, 0, "drafts", where);
  if (schedule.drafts > most_drafts) {
    throw ConfigError(
        fmt::format("{}/drafts: found {}, expected 0 to {}", where, schedule.drafts, most_drafts));
  }
  require_at_least(problem.states_per_page, 1, "page", where);
  if (problem.states_per_page > std::numeric_limits<std::int32_t>::max()) {
    throw ConfigError(fmt::format("{}/page: found {} states, expected at most {}", where,
                                  problem.states_per_page,
                                  std::numeric_limits<std::int32_t>::max()));
  }
  if (problem.fill.empty()) {
    throw ConfigError(fmt::format("{}/fill: found an empty text, expected a fill's name", where));
  }
  validate_lengths(problem, where);
}

std::string describe(const Problem& problem) {
  if (!problem.attention.empty()) return describe_attention(problem);
  if (problem.policy != shipped_policy) return describe_policy(problem);
  const IndexerConfig& indexer = problem.indexer;
  const Schedule& schedule = problem.schedule;
  std::string text = fmt::format(
      "{} {}x{} kpool {} topk {}{}, {} tokens", problem.mode, indexer.index_n_heads,
      indexer.index_head_dim, indexer.index_kpool, indexer.index_topk,
      indexer.index_kpool_always_select_tail ? "" : " no tail", describe_lengths(problem.lengths));
  if (schedule.prefill_tokens >= 0) text += fmt::format(", prefill {}", schedule.prefill_tokens);
  if (schedule.prefill_chunk > 0) text += fmt::format(", chunks of {}", schedule.prefill_chunk);
  if (schedule.drafts > 0) text += fmt::format(", {} drafts", schedule.drafts);
  text += fmt::format(", pages of {}, fill {}, seed {}", problem.states_per_page, problem.fill,
                      problem.seed);
  return text;
}

// Mode and lengths always, so that the line names a problem and not a default suite; the rest where
// it differs from the defaults.
std::string repeat_line(const Problem& problem) {
  static const Problem defaults;
  std::string line = "indexpool verify";
  if (problem.policy != defaults.policy) line += fmt::format(" --policy {}", problem.policy);
  if (!problem.attention.empty()) line += fmt::format(" --attention {}", problem.attention);
  line += fmt::format(" --mode {}", problem.mode);
  const auto option = [&line](const char* name, const auto& value, const auto& standard) {
    if (value != standard) line += fmt::format(" {} {}", name, value);
  };
  const IndexerConfig& indexer = problem.indexer;
  option("--heads", indexer.index_n_heads, defaults.indexer.index_n_heads);
  option("--head-dim", indexer.index_head_dim, defaults.indexer.index_head_dim);
  if (reads_topk(problem)) option("--topk", indexer.index_topk, defaults.indexer.index_topk);
  option("--kpool", indexer.index_kpool, defaults.indexer.index_kpool);
  if (!indexer.index_kpool_always_select_tail) line += " --no-tail";
  line += fmt::format(" --lengths {}", fmt::join(problem.lengths, ","));
  option("--prefill", problem.schedule.prefill_tokens, defaults.schedule.prefill_tokens);
  option("--chunk", problem.schedule.prefill_chunk, defaults.schedule.prefill_chunk);
  option("--drafts", problem.schedule.drafts, defaults.schedule.drafts);
  option("--page", problem.states_per_page, defaults.states_per_page);
  option("--fill", problem.fill, defaults.fill);
  option("--seed", problem.seed, defaults.seed);
  return line;
}

}  // namespace indexpool
