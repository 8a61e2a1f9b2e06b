// Traffic of the kernels that know no groups: a softmax of roles, products with the gate, maxima.
#include <algorithm>
#include <bit>

#include "indexpool/kernels/policy/declared.hpp"
#include "indexpool/kernels/policy/group_access.hpp"
#include "indexpool/kernels/policy/issued.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

// Stores of a block of hidden_gates with `tokens` of its 16: one word of each fragment's lane.
GlobalAccess gate_stores(const HiddenGatesArgs& args, std::int64_t tokens) {
  GlobalAccess sum;
  WarpInstruction instruction;
  for (int warp = 0; warp < gate_tiles(args.heads) * 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      const std::int64_t token = lane / 4 + 8 * (warp % 4 / 2);
      const std::int64_t head = gate_tile_heads * (warp / 4) + 2 * (lane % 4) + warp % 2;
      if (token < tokens && head < args.heads)
        instruction.touch(address_of(args.hidden_gates) + 4 * (token * args.heads + head), 4);
    }
    sum += instruction.take();
  }
  return sum;
}

void add_matrix_traffic(const HiddenGatesArgs& args, Work& work) {
  const std::int64_t blocks = blocks_for(args.tokens, gate_tokens), tiles = gate_tiles(args.heads);
  const std::int64_t last = args.tokens - (blocks - 1) * gate_tokens;
  const std::int64_t bytes = (args.tokens + blocks * args.heads) * args.hidden * 2;
  add_loads(work.traffic, {bytes, bytes / sector_bytes});
  if (blocks > 0) {  // 16 rows of gates are whole sectors: full blocks are alike
    add_stores(work.traffic, (blocks - 1) * gate_stores(args, gate_tokens));
    add_stores(work.traffic, gate_stores(args, last));
  }
  const std::int64_t words = blocks * gate_warps * tiles * 4;  // a warp's, of 128 bytes
  add_shared_stores(work.traffic, words, 128, 1);
  add_shared_loads(work.traffic, words, 128, 1);
  work.traffic.matrix_ops = blocks * blocks_for(args.hidden, gate_chunk) * 2 * tiles;
  work.traffic.block_barriers = blocks;
  work.matrix_flop =
      Flop(2.0 * static_cast<double>(args.tokens * args.heads) * static_cast<double>(args.hidden));
  work.matrix_dtype = args.storage == DType::f16 ? "f16" : "bf16";
  work.threads_per_block = gate_threads;
  work.blocks = blocks;
  work.blocks_per_sm = resident_blocks(gate_blocks_per_sm, gate_shared_bytes(args.heads));
  work.in_flight_per_block =
      Bytes(std::int64_t{gate_warps} * gate_chunk * 2 * (gate_tokens + args.heads));
}

void add_fma_traffic(const HiddenGatesArgs& args, Work& work) {
  const GlobalAccess row = row_access(DType::f32, args.hidden);
  const std::int64_t per_block = policy_threads / 32;
  add_loads(work.traffic, args.tokens * (1 + args.heads) * row);
  for (std::int64_t t = 0; t < args.tokens; ++t) {
    const std::int64_t bytes = std::int64_t{args.heads} * 4;
    add_stores(work.traffic, {bytes, sectors_of(address_of(args.hidden_gates) + t * bytes, bytes)});
  }
  work.traffic.shuffles = args.tokens * args.heads * 5;
  work.f32_flop =
      Flop(2.0 * static_cast<double>(args.tokens * args.heads) * static_cast<double>(args.hidden));
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(args.tokens, per_block);
  work.blocks_per_sm = gate_blocks_per_sm;
  work.in_flight_per_block = Bytes(per_block * piece_channels * 4 * (1 + args.heads));
}

}  // namespace

Work declared_role_weights(const RoleWeightsArgs& args) {
  const std::int64_t lanes = role_lanes(args.index_kpool), per_warp = 32 / lanes;
  const std::int64_t row = std::int64_t{args.index_kpool} * 4;
  Work work;
  for (std::int64_t first = 0; first < args.sets; first += per_warp) {
    const std::int64_t bytes = std::min(per_warp, args.sets - first) * row;
    const auto access = [&](const float* base) {
      return GlobalAccess{bytes, sectors_of(address_of(base) + first * row, bytes)};
    };
    add_loads(work.traffic, access(args.pool_matrix));
    add_stores(work.traffic, access(args.pool_weights));
    work.traffic.shuffles += std::int64_t{2} * std::countr_zero(static_cast<std::uint64_t>(lanes));
  }
  work.unique_read = work.traffic.global_load;
  work.unique_write = work.traffic.global_store;
  constexpr double softmax_flop = 23 + 3;  // exp_f32; shift, sum, division
  work.f32_flop = Flop(static_cast<double>(args.sets * args.index_kpool) * softmax_flop);
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(args.sets, policy_threads / lanes);
  work.blocks_per_sm = role_blocks_per_sm;
  work.in_flight_per_block = Bytes(policy_threads / lanes * row);
  return with_issue(work, role_weights_issue(args));
}

Work declared_hidden_gates(const HiddenGatesArgs& args) {
  Work work;
  if (args.storage == DType::f32)
    add_fma_traffic(args, work);
  else
    add_matrix_traffic(args, work);
  const std::int64_t rows = args.tokens + (args.tokens > 0 ? args.heads : 0);
  work.unique_read = Bytes(rows * args.hidden * info(args.storage).bytes);
  work.unique_write = Bytes(args.tokens * args.heads * 4);
  return with_issue(work, hidden_gates_issue(args));
}

Work declared_block_max(const BlockMaxArgs& args) {
  const std::int64_t blocks = blocks_for(args.tokens, args.block);
  constexpr std::int64_t load = std::int64_t{block_max_step} * 4,
                         store = std::int64_t{maxima_per_warp} * 4;
  // Rows start on a sector or in its middle.
  const auto row_loads = [&](std::int64_t row) {
    const std::int64_t start = address_of(args.scores) + row * args.stride * 4;
    GlobalAccess sum;
    for (std::int64_t first = 0; first < args.tokens; first += args.block) {
      const std::int64_t scores = std::min<std::int64_t>(args.block, args.tokens - first);
      sum += contiguous_access(start + first * 4, (scores + 3) / 4 * 16, load);
    }
    return sum;
  };
  Work work;
  if (args.rows > 0) add_loads(work.traffic, (args.rows + 1) / 2 * row_loads(0));
  if (args.rows > 1) add_loads(work.traffic, args.rows / 2 * row_loads(1));
  for (std::int64_t row = 0; row < args.rows; ++row)
    add_stores(work.traffic,
               contiguous_access(address_of(args.maxima) + row * blocks * 4, blocks * 4, store));
  const std::int64_t warps = args.rows * blocks_for(blocks, maxima_per_warp);
  work.traffic.shuffles = warps * (4 + 2 + 1 + 2);
  work.unique_read = work.traffic.global_load;
  work.unique_write = work.traffic.global_store;
  work.f32_flop = Flop(static_cast<double>(args.rows * args.tokens));
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(warps, policy_threads / 32);
  work.blocks_per_sm = block_max_blocks_per_sm;
  work.in_flight_per_block =
      Bytes(policy_threads / 32 * store * std::min(args.block, block_max_step));
  return with_issue(work, block_max_issue(args));
}

}  // namespace indexpool::kernels
