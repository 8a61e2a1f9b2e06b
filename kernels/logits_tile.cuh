// The matrix-core body of the logits kernels (logits_mma.cuh, logits_e4m3.cuh).
//
//   logits[row, p] = s_p * sum_h w'_h relu(q_h . k_p),  w'_h = head_weights * logit_scale * s_q,h
//
// Shapes. M = pools (16 per instruction), N = heads (8), K = head_dim. A = codes of pools, B =
// query codes of one token: rows of [N, H, D] are B's columns as the instruction wants them.
//
// Who does what. A block owns 128 pools of one request and goes through the rows of one query tile;
// a warp owns 32 of the pools and keeps their codes in registers as fragments for all rows. In a
// pair of accumulator tiles a lane holds two heads of four pools; it adds them, weighted, over the
// head tiles, then the four lanes of a row exchange sums so that each ends with one pool and 32
// lanes store 128 contiguous bytes. Query codes of row r + 1 arrive by cp.async while row r is
// multiplied.
//
// Bytes moved per block: 128 (D * code + 4) of keys and scales, rows * H (D * code + 4 [+ 4]) of
// queries and head weights, rows * 128 * 4 of logits; logits_declared.cpp counts them exactly.
//
// Precision. Products exact; sums over K as the instruction accumulates (Accumulation); w' has two
// roundings (one when nothing is quantised); heads 2j, 2j + 1 of a tile by fma, tiles ascending,
// then two additions across lanes; one multiplication by the pool's scale.
//
// Columns of heads beyond H and rows of pools beyond the tile are computed from whatever lies in
// shared memory and dropped: they cannot reach another column or row.
#pragma once

#include <cstdint>

#include "indexpool/kernels/geometry.hpp"
#include "indexpool/kernels/logits_fragments.cuh"
#include "indexpool/kernels/logits_params.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <Multiply M, int D>
struct MmaShape {
  static constexpr int code_row = D * code_bytes(M);  // bytes of a pool's or head's codes
  static constexpr int code_chunks = code_row / 16;
  static constexpr int code_steps = code_row / mma_step_bytes;
  static constexpr int steps = mma_steps(M, D);
  static constexpr int head_tiles = mma_head_tiles(M, D);
  static constexpr int loads = mma_loads(M, D);
  static constexpr int group_heads = mma_group_heads(M, D);

  using Codes = Swizzle<code_row>;
  using Operands = Swizzle<D * operand_bytes(M)>;
};

struct MmaParams {
  LogitsParams logits;
  MmaShared shared;
};

// Fragments of a warp's 32 pools: [half of 16 pools][step][register].
template <Multiply M, int D>
struct PoolFragments {
  std::uint32_t a[2][MmaShape<M, D>::steps][4];
};

// Gathers the codes of the warp's pools into its rows of the key tile; returns the scale of the
// pool whose logit this lane stores (see exchange_sums). Pools from `pools` on are left out.
template <Multiply M, int D>
IP_DEVICE float gather_pools(const LogitsParams& p, std::int64_t request, std::int64_t first_pool,
                             std::int64_t pools, std::byte* key_rows) {
  using S = MmaShape<M, D>;
  constexpr int chunks = S::code_chunks;
  const int lane = ip::lane_index();
  std::int64_t offset = 0;
  float scale = 0;
  if (first_pool + lane < pools) {
    const StateAddress mine = pool_address<Operand<M>::cache, D>(p, request, first_pool + lane);
    offset = mine.codes - p.cache.pages;
    if constexpr (Operand<M>::scaled) scale = ip::load_global(mine.scale);
  }
  for (int i = 0; i < chunks; ++i) {
    const int row = (lane + 32 * i) / chunks, chunk = (lane + 32 * i) % chunks;
    const std::int64_t from = ip::shuffle(ip::full_mask, offset, row);
    if (first_pool + row < pools)
      ip::async_copy_16(key_rows + S::Codes::offset(row, chunk), p.cache.pages + from + chunk * 16);
  }
  if constexpr (Operand<M>::scaled)
    scale = ip::shuffle(ip::full_mask, scale, 8 * (lane & 3) + (lane >> 2));
  return scale;
}

template <Multiply M, int D>
IP_DEVICE PoolFragments<M, D> load_pool_fragments(const std::byte* key_rows) {
  using S = MmaShape<M, D>;
  const int lane = ip::lane_index();
  PoolFragments<M, D> fragments;
  IP_UNROLL for (int half = 0; half < 2; ++half) {
    IP_UNROLL for (int step = 0; step < S::code_steps; ++step) {
      std::uint32_t codes[4];
      ip::load_matrix_x4(
          codes, key_rows + S::Codes::offset(16 * half + (lane & 15), 2 * step + (lane >> 4)));
      IP_UNROLL for (int i = 0; i < 4; ++i) {
        if constexpr (Operand<M>::converted) {
          fragments.a[half][step][i] = f16_pair_from_e4m3(codes[i]);
          fragments.a[half][S::code_steps + step][i] = f16_pair_from_e4m3(codes[i] >> 16);
        } else {
          fragments.a[half][step][i] = codes[i];
        }
      }
    }
  }
  return fragments;
}

// Starts the copies of a row's query codes, to `to` as they are or to the staging area.
template <Multiply M, int D>
IP_DEVICE void fetch_queries(const LogitsParams& p, std::int64_t row, std::byte* to) {
  using S = MmaShape<M, D>;
  constexpr int chunks = S::code_chunks;
  const std::byte* const from = p.queries + row * p.heads * S::code_row;
  for (int i = ip::thread_index(); i < p.heads * chunks; i += mma_threads) {
    const int at = Operand<M>::converted ? i * 16 : S::Codes::offset(i / chunks, i % chunks);
    ip::async_copy_16(to + at, from + static_cast<std::int64_t>(i) * 16);
  }
  ip::async_commit();
}

// Codes a thread has copied itself, from staging to operands. Bytes 0 and 1 of each word go to the
// first half of a row's steps, bytes 2 and 3 to the second, as in load_pool_fragments: any order
// along K will do as long as it is the same. Odd lines store the halves in the other order, so that
// eight lanes always write to eight groups of banks.
template <Multiply M, int D>
IP_DEVICE void convert_queries(int heads, const std::byte* staging, std::byte* operands) {
  using S = MmaShape<M, D>;
  constexpr int chunks = S::code_chunks;
  for (int i = ip::thread_index(); i < heads * chunks; i += mma_threads) {
    const int head = i / chunks, chunk = i % chunks;
    const auto codes = ip::load_shared(reinterpret_cast<const ip::Vec16*>(staging) + i);
    const ip::Vec16 low{f16_pair_from_e4m3(codes.x), f16_pair_from_e4m3(codes.y),
                        f16_pair_from_e4m3(codes.z), f16_pair_from_e4m3(codes.w)};
    const ip::Vec16 high{f16_pair_from_e4m3(codes.x >> 16), f16_pair_from_e4m3(codes.y >> 16),
                         f16_pair_from_e4m3(codes.z >> 16), f16_pair_from_e4m3(codes.w >> 16)};
    const bool swap = (head / S::Operands::rows_per_line & 1) != 0;
    const int first = S::Operands::offset(head, swap ? chunk + chunks : chunk);
    const int second = S::Operands::offset(head, swap ? chunk : chunk + chunks);
    ip::store_shared(reinterpret_cast<ip::Vec16*>(operands + first), swap ? high : low);
    ip::store_shared(reinterpret_cast<ip::Vec16*>(operands + second), swap ? low : high);
  }
}

// Dot products of the warp's pools with one group of heads, [head tile][half of 16
// pools][register].
template <Multiply M, int D>
struct Dots {
  Accumulator<M> d[MmaShape<M, D>::head_tiles][2][4];
};
template <Multiply M, int D>
IP_DEVICE Dots<M, D> multiply_group(const PoolFragments<M, D>& pools, const std::byte* operands,
                                    int first_head) {
  using S = MmaShape<M, D>;
  const int lane = ip::lane_index();
  Dots<M, D> dots{};
  IP_UNROLL for (int load = 0; load < S::loads; ++load) {
    std::uint32_t b[4];
    if constexpr (S::head_tiles == 1) {
      const int at = S::Operands::offset(first_head + (lane & 7), 4 * load + (lane >> 3));
      ip::load_matrix_x4(b, operands + at);
    } else {
      const int head = first_head + (lane & 7) + 8 * (lane >> 4);
      ip::load_matrix_x4(b, operands + S::Operands::offset(head, lane >> 3 & 1));
    }
    IP_UNROLL for (int part = 0; part < 2; ++part) {
      const std::uint32_t two[2] = {b[2 * part], b[2 * part + 1]};
      const int tile = S::head_tiles == 1 ? 0 : part;
      const int step = S::head_tiles == 1 ? 2 * load + part : 0;
      multiply<M>(dots.d[tile][0], pools.a[0][step], two);
      multiply<M>(dots.d[tile][1], pools.a[1][step], two);
    }
  }
  return dots;
}

struct alignas(8) TwoWeights {
  float even, odd;
};

// A lane's share of the weighted sums: pools lane / 4 + {0, 8, 16, 24} over heads 2 (lane % 4) and
// the next of every tile.
template <Multiply M, int D>
IP_DEVICE void weigh_heads(const PoolFragments<M, D>& pools, const std::byte* operands,
                           const float* head_weights, int heads, float (&sums)[4]) {
  using S = MmaShape<M, D>;
  for (int first = 0; first < heads; first += S::group_heads) {
    const Dots<M, D> dots = multiply_group<M, D>(pools, operands, first);
    IP_UNROLL for (int tile = 0; tile < S::head_tiles; ++tile) {
      const int head = first + 8 * tile + 2 * (ip::lane_index() & 3);
      const auto w = ip::load_shared(reinterpret_cast<const TwoWeights*>(head_weights + head));
      IP_UNROLL for (int i = 0; i < 4; ++i) {
        const auto& d = dots.d[tile][i >> 1];
        sums[i] = add_head(sums[i], dot_value(d[2 * (i & 1)]), w.even, head < heads);
        sums[i] = add_head(sums[i], dot_value(d[2 * (i & 1) + 1]), w.odd, head + 1 < heads);
      }
    }
  }
}

// Adds the sums of the four lanes of a row; lane 4 g + t ends with pool 8 t + g of the warp's 32.
IP_DEVICE float exchange_sums(const float (&sums)[4]) {
  const int lane = ip::lane_index();
  const bool odd = (lane & 1) != 0, upper = (lane & 2) != 0;
  const float a =
      ip::add(odd ? sums[1] : sums[0], ip::shuffle_xor(ip::full_mask, odd ? sums[0] : sums[1], 1));
  const float b =
      ip::add(odd ? sums[3] : sums[2], ip::shuffle_xor(ip::full_mask, odd ? sums[2] : sums[3], 1));
  return ip::add(upper ? b : a, ip::shuffle_xor(ip::full_mask, upper ? a : b, 2));
}

template <Multiply M>
IP_DEVICE float finish_logit(float sum, float scale) {
  if constexpr (Operand<M>::converted) sum = ip::mul(sum, converted_scale);  // exact
  if constexpr (Operand<M>::scaled) return ip::mul(sum, scale);
  return sum;
}

template <Multiply M, int D>
IP_KERNEL(mma_threads, M == Multiply::e4m3 ? mma_e4m3_blocks_per_sm : mma_blocks_per_sm)
void mma_logits(MmaParams params) {
  using S = MmaShape<M, D>;
  const LogitsParams& p = params.logits;
  const MmaShared& at = params.shared;
  const BlockPlace place = block_place(p, mma_tile_pools);
  if (place.first_pool >= place.tile.pools) return;

  std::byte* const shared = ip::dynamic_shared();
  const int warp = ip::warp_index(), lane = ip::lane_index(), thread = ip::thread_index();
  std::byte* const key_rows = shared + warp * mma_warp_pools * S::code_row;
  const auto operands = [&](int row) { return shared + at.queries + (row & 1) * at.query_buffer; };
  const auto head_weights = [&](int row) {
    return reinterpret_cast<float*>(shared + at.head_weights + (row & 1) * at.head_weights_buffer);
  };
  const auto fetch = [&](int row) {  // nothing waits for what it reads
    fetch_queries<M, D>(p, place.tile.first_row + row,
                        Operand<M>::converted ? shared + at.staging : operands(row));
    return fetch_row<Operand<M>::scaled>(p, place.tile.first_row + row, thread, p.heads);
  };
  const auto settle = [&](int row, const FetchedRow& fetched) {
    if (thread < p.heads)
      ip::store_shared(head_weights(row) + thread, scaled_weight<Operand<M>::scaled>(p, fetched));
    ip::async_wait<0>();
    if constexpr (Operand<M>::converted)
      convert_queries<M, D>(p.heads, shared + at.staging, operands(row));
    ip::sync_block();
  };

  const std::int64_t warp_pool = place.first_pool + warp * mma_warp_pools;
  const float scale =
      gather_pools<M, D>(p, place.tile.request, warp_pool, place.tile.pools, key_rows);
  FetchedRow fetched = fetch(0);
  settle(0, fetched);
  const PoolFragments<M, D> pools = load_pool_fragments<M, D>(key_rows);
  const std::int64_t pool = warp_pool + 8 * (lane & 3) + (lane >> 2);
  const std::int64_t closing_position = (pool + 1) * p.index_kpool - 1;

  for (int row = 0; row < place.tile.rows; ++row) {
    const std::int64_t position = fetched.position;
    const bool more = row + 1 < place.tile.rows;
    if (more) fetched = fetch(row + 1);
    float sums[4] = {0, 0, 0, 0};
    weigh_heads<M, D>(pools, operands(row), head_weights(row), p.heads, sums);
    const float logit = finish_logit<M>(exchange_sums(sums), scale);
    if (closing_position <= position)
      ip::store_global(p.logits + (place.tile.first_row + row) * p.logits_stride + pool, logit);
    if (more) settle(row + 1, fetched);
  }
}

template <Multiply M, int D>
void launch_mma_logits(const LogitsArgs& args, LaunchContext& context) {
  const int heads = static_cast<int>(args.shape.config.index_n_heads);
  const MmaParams params = {make_logits_params(args), mma_shared(M, D, heads)};
  const std::int64_t blocks = args.tile_count * blocks_for(args.max_pools, mma_tile_pools);
  ip_launch(context, blocks, mma_threads, params.shared.bytes, mma_logits<M, D>, params);
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
