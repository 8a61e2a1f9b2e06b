#include "indexpool/kernels/issued.hpp"

#include <algorithm>

#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/topk_geometry.hpp"

namespace indexpool::kernels {
namespace {

double count(std::int64_t n) { return static_cast<double>(n); }
double of_128(std::int64_t head_dim) { return count(head_dim) / 128; }

// A warp that closes index_kpool 4 pools from registers, without checksums; how much longer the
// code with loops over tokens is, at four of them.
struct Closing {
  Instructions registers;
  double loops;
};
constexpr Instructions per_token{300, 95, 4}, per_group{70, 40, 0};

Instructions checksum(const NumericMode& mode) {
  if (mode.cache == DType::e4m3) return {183, 115, 1};
  if (mode.cache == DType::i8) return {101, 36, 1};
  if (mode.cache == DType::f32) return {134, 64, 1};
  return {112, 49, 1};
}

Closing closing(const NumericMode& mode) {
  if (mode.cache == DType::i8) return {{1558, 584, 60}, 1.17};
  if (mode.cache == DType::e4m3) {
    if (mode.scale == ScaleRule::power_of_two) return {{1477, 564, 35}, 1.17};
    return {{1553, 573, 45}, 1.16};
  }
  if (mode.storage == DType::f32) return {{1521, 452, 46}, 1.7};
  if (mode.storage == DType::f16) return {{2417, 669, 46}, 1.18};
  if (mode.pool_rounding == PoolRounding::storage_products) return {{1668, 543, 118}, 1.7};
  return {{1260, 513, 27}, 1.2};
}

// Exchanges between lanes that the next step waits for: rotation, largest magnitude, checksums.
double exchange_steps(const Shape& shape, bool checksums) {
  double steps = 0;
  for (std::int64_t lanes = shape.config.index_head_dim / channels_per_lane; lanes > 1; lanes /= 2)
    steps += (checksums ? 1 : 0) + (shape.mode.hadamard ? 1 : 0) + (shape.mode.quantised() ? 1 : 0);
  return steps;
}

}  // namespace

Instructions pool_instructions(const Shape& shape, bool checksums) {
  const Closing mode = closing(shape.mode);
  const std::int64_t kpool = shape.config.index_kpool;
  Instructions sum = mode.registers;
  if (kpool != tokens_in_flight)
    sum = mode.loops * sum + count(kpool - tokens_in_flight) * per_token +
          count(blocks_for(kpool, tokens_in_flight) - 1) * per_group;
  if (checksums) sum += checksum(shape.mode);
  return sum;
}

Instructions append_instructions(const Shape& shape, bool checksums, bool closes) {
  constexpr Instructions alone{150, 60, 4}, around{520, 290, 7};
  return closes ? pool_instructions(shape, checksums) + around : alone;
}

Instructions quantize_query_instructions(const Shape& shape) {
  if (shape.mode.cache == DType::i8) return {354, 94, 33};
  if (shape.mode.scale == ScaleRule::power_of_two) return {274, 109, 8};
  return {348, 120, 18};
}

Instructions seed_tail_instructions() { return {70, 35, 0}; }

Chain pool_chain(const Shape& shape, bool checksums) {
  Chain chain;
  chain.first_loads = 2;  // job, rows
  chain.shuffles = exchange_steps(shape, checksums);
  chain.arithmetic = 60;
  chain.instructions = pool_instructions(shape, checksums).issued;
  return chain;
}

Chain append_chain(const Shape& shape, bool checksums, std::int64_t steps, bool closes) {
  Chain chain;
  chain.first_loads = 2 + (closes ? 1 : 0);  // job, slot and token, ring
  chain.loads = 2 * count(std::max<std::int64_t>(steps - 1, 0));
  chain.shuffles = closes ? exchange_steps(shape, checksums) * count(steps) : 0;
  chain.arithmetic = closes ? 60 : 10;
  chain.instructions = count(steps) * append_instructions(shape, checksums, closes).issued;
  return chain;
}

Chain quantize_query_chain(const Shape& shape) {
  Chain chain;
  chain.first_loads = 1;
  chain.shuffles = exchange_steps(shape, false);
  chain.arithmetic = 40;
  chain.instructions = quantize_query_instructions(shape).issued;
  return chain;
}

Chain seed_tail_chain() {
  Chain chain;
  chain.first_loads = 2;
  chain.instructions = seed_tail_instructions().issued;
  return chain;
}

// Parts of a row: bookkeeping, per 16 bytes of codes that a thread fetches (and converts), per
// group of heads.
LogitsIssue mma_instructions(Multiply m, std::int64_t head_dim, std::int64_t heads) {
  const double d = of_128(head_dim);
  const double chunks = d * count(heads * code_bytes(m)) * 128 / 16 / mma_threads;
  const double groups = count(blocks_for(heads, mma_group_heads(m, static_cast<int>(head_dim))));
  const auto row = [&](Instructions around, Instructions chunk, Instructions group) {
    return around + chunks * chunk + groups * group;
  };
  switch (m) {
    case Multiply::bf16:
    case Multiply::f16:
      return {{244 + 320 * d, 110 + 170 * d, 6},
              row({147, 55, 0}, {16, 9, 0}, {25 + 44 * d, 18 + 9 * d, 0})};
    case Multiply::i8:
      return {{170 + 174 * d, 70 + 90 * d, 6},
              row({159, 44, 0}, {15, 9, 0}, {55 + 24 * d, 32 + 4 * d, 0})};
    case Multiply::e4m3_as_f16:
      return {{320 + 810 * d, 130 + 550 * d, 6},
              row({158, 56, 0}, {146, 87, 0}, {26 + 44 * d, 23 + 9 * d, 0})};
    case Multiply::e4m3:
      return {{180 + 170 * d, 90 + 90 * d, 6},
              row({137 + 161 * d, 52 + 137 * d, 0}, {16, 9, 0}, {25 + 114 * d, 14 + 23 * d, 0})};
  }
  return {};
}

Chain mma_chain(Multiply m, std::int64_t head_dim, std::int64_t heads, double rows) {
  const int d = static_cast<int>(head_dim);
  const double groups = count(blocks_for(heads, mma_group_heads(m, d)));
  const LogitsIssue issue = mma_instructions(m, head_dim, heads);
  Chain chain;
  chain.first_loads = 3;  // tile, block table, codes
  chain.shared = rows * (groups + (converts(m) ? 4 : 2));
  chain.matrix = rows * groups * mma_steps(m, d);
  chain.shuffles = 2 * rows;
  chain.barriers = rows;
  chain.arithmetic = rows * (10 * groups + 20);
  chain.instructions = issue.block.issued + rows * issue.row.issued;
  return chain;
}

LogitsIssue fma_instructions(std::int64_t head_dim, std::int64_t heads) {
  const double stages = count(blocks_for(heads, fma_stage_heads));
  return {{400, 200, 9}, stages * Instructions{100 + 2560 * of_128(head_dim), 60, 0}};
}

Chain fma_chain(std::int64_t head_dim, std::int64_t heads, double rows) {
  const double stages = count(blocks_for(heads, fma_stage_heads));
  const LogitsIssue issue = fma_instructions(head_dim, heads);
  Chain chain;
  chain.first_loads = 3;
  chain.shared = 4 * rows * stages;
  chain.barriers = rows * stages;
  chain.instructions = issue.block.issued + rows * issue.row.issued;
  return chain;
}

namespace {

// How a warp goes through its segment: whole batches of 16-byte loads, single ones, then pool by
// pool.
struct Passes {
  double batches, vectors, singles;

  explicit Passes(std::int64_t pools) {
    constexpr std::int64_t batch = std::int64_t{topk_vectors} * topk_pool_group;
    batches = count(pools / batch);
    vectors = count(pools % batch / topk_pool_group);
    singles = count(blocks_for(pools % topk_pool_group, 32));
  }
  double waits() const { return batches + vectors / 2 + (singles > 0 ? 1 : 0); }
  Instructions all(Instructions batch, Instructions vector, Instructions single) const {
    return batches * batch + vectors * vector + singles * single;
  }
};

Instructions emission(std::int64_t pools) {
  constexpr std::int64_t batch = std::int64_t{32} * topk_singles;
  return count(pools / batch) * Instructions{524, 314, 64} +
         count(blocks_for(pools % batch, 32)) * Instructions{46, 25, 4};
}
double columns_of_thread(std::int64_t width) { return count(width) / topk_threads; }

}  // namespace

Instructions topk_instructions(std::int64_t pools, std::int64_t digits, std::int64_t width) {
  const Passes passes(pools);
  const Instructions around{290, 135, 3}, column{70, 34, 3}, digit{330, 150, 0};
  return around + columns_of_thread(width) * column +
         count(digits) * (digit + passes.all({468, 344, 0}, {66, 48, 0}, {20, 14, 0})) +
         passes.all({435, 310, 0}, {60, 43, 0}, {22, 13, 0}) + emission(pools);
}

Chain topk_chain(std::int64_t pools, std::int64_t digits, std::int64_t width) {
  const Passes passes(pools);
  Chain chain;
  chain.first_loads = 1 + passes.waits();  // the row's record, then the first pass
  chain.loads =
      count(digits) * passes.waits() + count(blocks_for(pools, std::int64_t{32} * topk_singles));
  chain.shared = count(digits) * 12 + 8 + columns_of_thread(width);
  chain.atomics = count(digits);
  chain.shuffles = count(digits) * 5 + 10 + 3 * count(blocks_for(pools, 32));
  chain.barriers = count(digits) * 4 + 2;
  chain.arithmetic = count(digits) * 40 + 40;
  chain.instructions = topk_instructions(pools, digits, width).issued;
  return chain;
}

}  // namespace indexpool::kernels
