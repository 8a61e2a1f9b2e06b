// Warp instructions that the compiled kernels issue and the steps of theirs that wait for each
// other, for the cost model.
//
// Counted in the sm_90a code that nvcc 13.0 makes for head_dim 128, block of code by block of code;
// what depends on head_dim elsewhere is scaled. Hardware counters (smsp__inst_executed) are beside
// the declared numbers in reports/results. Another compiler may differ by some percent.
#pragma once

#include <cstdint>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/logits_geometry.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::kernels {

// Instructions of a warp that closes pools together, and of one step of append that closes some or
// none.
double pool_instructions(const Shape& shape, bool checksums);
double append_instructions(const Shape& shape, bool checksums, bool closes);
double quantize_query_instructions(const Shape& shape);
double seed_tail_instructions();

// What waits in them.
Chain pool_chain(const Shape& shape, bool checksums);
Chain append_chain(const Shape& shape, bool checksums, std::int64_t steps, bool closes);
Chain quantize_query_chain(const Shape& shape);
Chain seed_tail_chain();

// Of a warp of the matrix-core kernels: once a block, and for each row of its tile.
struct MmaIssue {
  double block = 0, row = 0;
};
MmaIssue mma_instructions(Multiply m, std::int64_t head_dim, std::int64_t heads);
Chain mma_chain(Multiply m, std::int64_t head_dim, std::int64_t heads, double rows);
MmaIssue fma_instructions(std::int64_t head_dim, std::int64_t heads);
Chain fma_chain(std::int64_t head_dim, std::int64_t heads, double rows);

// Of a warp of topk whose segment has `pools` pools, and of a whole row.
double topk_instructions(std::int64_t pools, std::int64_t digits, std::int64_t width);
Chain topk_chain(std::int64_t pools, std::int64_t digits, std::int64_t width);

}  // namespace indexpool::kernels
