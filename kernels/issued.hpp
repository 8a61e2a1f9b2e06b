// Warp instructions that the compiled kernels issue, by pipe, and the steps of theirs that wait for
// each other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for head_dim 128, block of code by block of code,
// and set to what hardware counters (smsp__inst_executed) saw where they looked: the records of
// counted launches are in reports/results. What depends on head_dim is scaled for others. Another
// compiler may differ by some percent.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/logits_geometry.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

// Of a warp that closes pools together, and of one step of append that closes some or none.
Instructions pool_instructions(const Shape& shape, bool checksums);
Instructions append_instructions(const Shape& shape, bool checksums, bool closes);
Instructions quantize_query_instructions(const Shape& shape);
Instructions seed_tail_instructions();

// What waits in them.
Chain pool_chain(const Shape& shape, bool checksums);
Chain append_chain(const Shape& shape, bool checksums, std::int64_t steps, bool closes);
Chain quantize_query_chain(const Shape& shape);
Chain seed_tail_chain();

// Of a warp of a logits kernel: once a block, and for each row of its tile.
struct LogitsIssue {
  Instructions block, row;
};
LogitsIssue mma_instructions(Multiply m, std::int64_t head_dim, std::int64_t heads);
Chain mma_chain(Multiply m, std::int64_t head_dim, std::int64_t heads, double rows);
LogitsIssue fma_instructions(std::int64_t head_dim, std::int64_t heads);
Chain fma_chain(std::int64_t head_dim, std::int64_t heads, double rows);

// Of a warp of topk whose segment has `pools` pools; `digits` passes look for the threshold.
Instructions topk_instructions(std::int64_t pools, std::int64_t digits, std::int64_t width);
Chain topk_chain(std::int64_t pools, std::int64_t digits, std::int64_t width);

}  // namespace indexpool::kernels
