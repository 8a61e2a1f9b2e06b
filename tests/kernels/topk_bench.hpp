// Rows of logits made to embarrass a selection, topk run over them on the executor, and the same
// selection by a stable sort.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::kernels {

// Named families of rows; each attacks what its comment in topk_bench.cpp says.
std::vector<std::string> topk_fill_names();
std::vector<float> topk_fill(const std::string& name, std::int64_t pools, std::uint64_t seed);

struct TopkRow {
  QueryRow query{};
  std::vector<float> logits;  // the visible ones
};

IndexerConfig topk_config(std::int64_t topk_pools, std::int64_t index_kpool, bool forced_tail);
TopkRow topk_row(const IndexerConfig& config, std::vector<float> logits, std::int64_t tail_tokens,
                 std::int64_t first_key = 0);

// The row of tokens by sorting all visible pools: selected, then the tail, unused -1.
std::vector<std::int32_t> host_selection(const IndexerConfig& config, const TopkRow& row);

struct TopkRun {
  std::vector<std::int32_t> selection;  // [N, selection_width]
  Traffic declared, counted;
};
// `stride`: floats from row to row; columns a row does not see hold +inf. Throws when guards are
// damaged.
TopkRun run_topk(const IndexerConfig& config, std::span<const TopkRow> rows, std::int64_t stride,
                 sim::simt::Options options = {});

}  // namespace indexpool::kernels
