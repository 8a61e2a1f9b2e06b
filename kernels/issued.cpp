#include "indexpool/kernels/issued.hpp"

#include <algorithm>

#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/topk_geometry.hpp"

namespace indexpool::kernels {
namespace {

double count(std::int64_t n) { return static_cast<double>(n); }
double of_128(std::int64_t head_dim) { return count(head_dim) / 128; }

// Code of a numeric mode: index_kpool 4 with the pool in registers, and as loops over tokens, of
// which each further group of four and each further token costs `per_group` and `per_token`.
struct ModeIssue {
  double registers, loops;
};
constexpr double per_token = 300, per_group = 70, checksum_of_codes = 179, checksum_of_values = 90;

ModeIssue closing(const NumericMode& mode) {
  const bool stored = mode.pool_rounding == PoolRounding::storage_products;
  if (mode.cache == DType::i8) return {1698, 1977};
  if (mode.cache == DType::e4m3)
    return mode.scale == ScaleRule::power_of_two ? ModeIssue{1702, 1980} : ModeIssue{1778, 2059};
  if (mode.storage == DType::f32) return {1631, 2761};
  if (mode.storage == DType::f16) return {2527, 2978};
  return stored ? ModeIssue{1778, 2982} : ModeIssue{1371, 1646};
}

// Shuffles of a quantised pool that the next step waits for: rotation, largest magnitude.
double exchange_steps(const Shape& shape, bool checksums) {
  const double tree = count(shape.config.index_head_dim) / 32;  // 128: 4 steps over 16 lanes
  double steps = checksums ? tree : 0;
  if (shape.mode.hadamard) steps += tree;
  if (shape.mode.quantised()) steps += tree;
  return steps;
}

}  // namespace

double pool_instructions(const Shape& shape, bool checksums) {
  const ModeIssue issue = closing(shape.mode);
  const std::int64_t kpool = shape.config.index_kpool;
  double sum = issue.registers;
  if (kpool != tokens_in_flight)
    sum = issue.loops + per_token * count(kpool - tokens_in_flight) +
          per_group * count(blocks_for(kpool, tokens_in_flight) - 1);
  if (!checksums) sum -= shape.mode.quantised() ? checksum_of_codes : checksum_of_values;
  return sum;
}

double append_instructions(const Shape& shape, bool checksums, bool closes) {
  constexpr double alone = 150, around = 130;
  return closes ? pool_instructions(shape, checksums) + around : alone;
}

double quantize_query_instructions(const Shape& shape) {
  if (shape.mode.cache == DType::e4m3 && shape.mode.scale == ScaleRule::power_of_two) return 272;
  return shape.mode.cache == DType::i8 ? 358 : 348;
}

double seed_tail_instructions() { return 70; }

Chain pool_chain(const Shape& shape, bool checksums) {
  Chain chain;
  chain.first_loads = 2;  // job, rows
  chain.shuffles = exchange_steps(shape, checksums);
  chain.arithmetic = 60;
  chain.instructions = pool_instructions(shape, checksums);
  return chain;
}

Chain append_chain(const Shape& shape, bool checksums, std::int64_t steps, bool closes) {
  Chain chain;
  chain.first_loads = 2 + (closes ? 1 : 0);  // job, slot and token, ring
  chain.loads = 2 * count(std::max<std::int64_t>(steps - 1, 0));
  chain.shuffles = closes ? exchange_steps(shape, checksums) * count(steps) : 0;
  chain.arithmetic = closes ? 60 : 10;
  chain.instructions = count(steps) * append_instructions(shape, checksums, closes);
  return chain;
}

Chain quantize_query_chain(const Shape& shape) {
  Chain chain;
  chain.first_loads = 1;
  chain.shuffles = exchange_steps(shape, false);
  chain.arithmetic = 40;
  chain.instructions = quantize_query_instructions(shape);
  return chain;
}

Chain seed_tail_chain() {
  Chain chain;
  chain.first_loads = 2;
  chain.instructions = seed_tail_instructions();
  return chain;
}

MmaIssue mma_instructions(Multiply m, std::int64_t head_dim, std::int64_t heads) {
  const double d = of_128(head_dim), chunks = d * count(heads * code_bytes(m)) / 32;
  const double groups = count(blocks_for(heads, mma_group_heads(m, static_cast<int>(head_dim))));
  switch (m) {
    case Multiply::bf16:
    case Multiply::f16:
      return {330 + 320 * d, 120 + 16 * chunks * 2 + groups * (25 + 44 * d)};
    case Multiply::i8:
      return {280 + 170 * d, 125 + 16 * chunks * 2 + groups * (43 + 36 * d)};
    case Multiply::e4m3_as_f16:
      return {350 + 1200 * d, 142 + 148 * chunks * 2 + groups * (26 + 44 * d)};
    case Multiply::e4m3:
      return {290 + 175 * d, 110 + 16 * chunks * 2 + 161 * d + groups * (25 + 114 * d)};
  }
  return {};
}

Chain mma_chain(Multiply m, std::int64_t head_dim, std::int64_t heads, double rows) {
  const int d = static_cast<int>(head_dim);
  const double groups = count(blocks_for(heads, mma_group_heads(m, d)));
  const MmaIssue issue = mma_instructions(m, head_dim, heads);
  Chain chain;
  chain.first_loads = 3;  // tile, block table, codes
  chain.shared = rows * (groups + (converts(m) ? 4 : 2));
  chain.matrix = rows * groups * mma_steps(m, d);
  chain.shuffles = 2 * rows;
  chain.barriers = rows;
  chain.arithmetic = rows * (10 * groups + 20);
  chain.instructions = issue.block + rows * issue.row;
  return chain;
}

MmaIssue fma_instructions(std::int64_t head_dim, std::int64_t heads) {
  const double stages = count(blocks_for(heads, fma_stage_heads));
  return {400, stages * (100 + 640 * of_128(head_dim) * 4)};
}

Chain fma_chain(std::int64_t head_dim, std::int64_t heads, double rows) {
  const double stages = count(blocks_for(heads, fma_stage_heads));
  const MmaIssue issue = fma_instructions(head_dim, heads);
  Chain chain;
  chain.first_loads = 3;
  chain.shared = 4 * rows * stages;
  chain.barriers = rows * stages;
  chain.instructions = issue.block + rows * issue.row;
  return chain;
}

namespace {

// How a warp goes through its segment: whole batches of 16-byte loads, single ones, then pool by
// pool.
struct Passes {
  double batches, vectors, singles;

  explicit Passes(std::int64_t pools) {
    constexpr std::int64_t batch = topk_vectors * topk_pool_group;
    batches = count(pools / batch);
    vectors = count(pools % batch / topk_pool_group);
    singles = count(blocks_for(pools % topk_pool_group, 32));
  }
  double waits() const { return batches + vectors / 2 + (singles > 0 ? 1 : 0); }
  double cost(double batch, double vector, double single) const {
    return batches * batch + vectors * vector + singles * single;
  }
};

double emission(std::int64_t pools) {
  constexpr std::int64_t batch = 32 * topk_singles;
  return count(pools / batch) * 524 + count(blocks_for(pools % batch, 32)) * 46;
}
double columns_of_thread(std::int64_t width) { return count(width) / topk_threads; }

}  // namespace

double topk_instructions(std::int64_t pools, std::int64_t digits, std::int64_t width) {
  const Passes passes(pools);
  return 110 + count(digits) * (300 + passes.cost(468, 66, 20)) + 120 + passes.cost(435, 60, 22) +
         emission(pools) + 60 + 64 * columns_of_thread(width);
}

Chain topk_chain(std::int64_t pools, std::int64_t digits, std::int64_t width) {
  const Passes passes(pools);
  const double again = count(digits > 0 ? digits - 1 : 0) + (digits > 0 ? 1 : 0);
  Chain chain;
  chain.first_loads = 1 + passes.waits();  // the row's record, then the first pass
  chain.loads = again * passes.waits() + count(blocks_for(pools, 32 * topk_singles));
  chain.shared = count(digits) * 12 + 8 + columns_of_thread(width);
  chain.atomics = count(digits);
  chain.shuffles = count(digits) * 5 + 10 + 3 * count(blocks_for(pools, 32));
  chain.barriers = count(digits) * 4 + 2;
  chain.arithmetic = count(digits) * 40 + 40;
  chain.instructions = topk_instructions(pools, digits, width);
  return chain;
}

}  // namespace indexpool::kernels
