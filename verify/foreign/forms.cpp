// Forms of a row of selected tokens, kinds of accumulation, and the search in all such tables.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/verify/foreign/adapters.hpp"

namespace indexpool::verify {
namespace {

std::string named(std::int32_t found, const SelectedRow& row) {
  if (found == -1) return "-1";
  return fmt::format("token {} of pool {}", found - row.first_key,
                     (found - row.first_key) / row.config.index_kpool);
}

std::int64_t pooled_tokens(const SelectedRow& row) {
  return (row.position + 1) / row.config.index_kpool * row.config.index_kpool;
}

// Tail tokens stand in order from column `first` on and in no other; columns from `end_of_history`
// on hold nothing else.
std::string tail_fault(const SelectedRow& row, std::int64_t first, std::int64_t end_of_history) {
  if (!row.config.index_kpool_always_select_tail) return {};
  for (std::size_t c = 0; c < row.entries.size(); ++c) {
    const auto column = static_cast<std::int64_t>(c);
    const std::int64_t token = row.entries[c] - row.first_key;
    const bool is_tail = row.entries[c] != -1 && token >= pooled_tokens(row);
    const std::int64_t here = pooled_tokens(row) + column - first;
    const bool wants_tail = column >= first && here <= row.position;
    const bool held = wants_tail                 ? token == here
                      : column >= end_of_history ? row.entries[c] == -1
                                                 : !is_tail;
    if (held) continue;
    return fmt::format("column {}: {}, expected {}", c, named(row.entries[c], row),
                       wants_tail                 ? fmt::format("token {} of the tail", here)
                       : column >= end_of_history ? "-1"
                                                  : "a token of a selected pool or -1");
  }
  return {};
}

std::string tail_anywhere(const SelectedRow& /*row*/) { return {}; }
std::string tail_at_fixed_columns(const SelectedRow& row) {
  return tail_fault(row, row.config.index_topk, row.config.index_topk);
}
std::string tail_after_batch(const SelectedRow& row) {
  const std::int64_t columns =
      std::min(row.config.index_topk, row.batch_pools * row.config.index_kpool);
  return tail_fault(row, columns, columns);
}
std::string tail_after_history(const SelectedRow& row) {
  const auto history = static_cast<std::int64_t>(row.pools.size()) * row.config.index_kpool;
  std::string fault = tail_fault(row, history, history);
  if (!fault.empty()) return fault;
  for (std::int64_t c = 0; c < history; ++c) {
    if (row.entries[static_cast<std::size_t>(c)] != -1) continue;
    return fmt::format("column {}: -1 before the last selected pool ends in column {}", c,
                       history - 1);
  }
  return {};
}

constexpr FormAdapter tail_table[] = {
    {"any", "anywhere in the row", tail_anywhere},
    {"fixed", "from column index_topk on (vLLM)", tail_at_fixed_columns},
    {"batch",
     "from column min(index_topk, tokens in pools of the longest sequence) on (transformers)",
     tail_after_batch},
    {"compacted", "right after the selected pools (SGLang, vLLM on a CPU)", tail_after_history},
};

std::string in_any_order(const SelectedRow& /*row*/) { return {}; }
std::string ascending(const SelectedRow& row) {
  std::size_t column = 0;
  for (const std::int64_t pool : row.pools) {
    for (std::int64_t j = 0; j < row.config.index_kpool; ++j, ++column) {
      const std::int64_t token = pool * row.config.index_kpool + j;
      if (row.entries[column] - row.first_key == token) continue;
      return fmt::format("column {}: {}, expected token {} of pool {}", column,
                         named(row.entries[column], row), token, pool);
    }
  }
  return {};
}

constexpr FormAdapter order_table[] = {
    {"any", "a set: any order, -1 anywhere", in_any_order},
    {"ascending", "ascending from column 0, no -1 in between", ascending},
};

// --- dot products ---

constexpr AccumulationRow accumulation_table[] = {
    {"f32", "binary32, any order, fused or not", kernels::Accumulation::f32_fma},
    {"mma_f16", "tensor cores on f16 or bf16 operands", kernels::Accumulation::mma_f16_bf16},
    {"mma_e4m3", "tensor cores on e4m3 operands", kernels::Accumulation::mma_e4m3},
    {"mma_i8", "tensor cores on int8 operands", kernels::Accumulation::mma_i8},
};

}  // namespace

std::span<const FormAdapter> tail_adapters() { return tail_table; }
std::span<const FormAdapter> order_adapters() { return order_table; }
std::span<const AccumulationRow> accumulations() { return accumulation_table; }

std::string layout_names() {
  std::vector<std::string_view> names;
  for (const CacheAdapter& adapter : cache_adapters()) names.push_back(adapter.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string unknown_name(std::string_view what, const std::string& name,
                         const std::vector<std::string>& known) {
  const auto near = near_names(name, known);
  return fmt::format("unknown {} '{}'{} (known: {})", what, name,
                     near.empty() ? "" : fmt::format(": did you mean {}?", fmt::join(near, " or ")),
                     fmt::join(known, ", "));
}

}  // namespace indexpool::verify
