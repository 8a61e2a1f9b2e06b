// composite_attention: causal attention over decompressed composites, with the original values
// (article A; decompress.cuh makes the queries and keys):
//
//   outputs_t = sum_(s <= t) exp(z_ts) v_s / sum_(s <= t) exp(z_ts),  z_ts = scale q_t . k_s
//
// queries, keys [T, H, D] f32, values [T, H, D] storage dtype, outputs [T, H, D] f32, T any length.
// A block for 64 tokens of a head goes through the tokens before them in tiles of 32: scores in
// f32, largest score and sums so far rescaled once a tile, weighted values added token by token in
// registers. Blocks with the most tiles come first. Bytes per block: 64 queries in, 64 outputs out,
// and a key and a value of every token up to its last one, from the L2 where it holds them.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/tile.cuh"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct CompositeParams {
  const std::byte* queries;
  const std::byte* keys;
  const std::byte* values;
  std::int64_t tokens;
  std::int32_t heads;
  float scale;
  float* outputs;
};

// A block's tokens and its shared memory.
template <int K>
struct CompositeTile {
  std::int64_t head, first, end, pitch;
  float* queries;  // [64, K]
  float* keys;     // [32, K + 4]
  float* values;   // [32, K]
  float* weights;  // [64, weight_stride]

  IP_DEVICE explicit CompositeTile(const CompositeParams& p)
      : head(ip::block_index() % p.heads), pitch(std::int64_t{p.heads} * K) {
    const std::int64_t tiles = ip::grid_blocks() / p.heads;
    first = (tiles - 1 - ip::block_index() / p.heads) * tile_rows;
    end = first + tile_rows < p.tokens ? first + tile_rows : p.tokens;
    queries = reinterpret_cast<float*>(ip::dynamic_shared());
    keys = queries + tile_rows * K;
    values = keys + tile_others * (K + tile_padding);
    weights = values + tile_others * K;
  }
  IP_DEVICE std::int64_t token(int i) const { return first + tile_row() + i * row_step; }
};

// What a thread keeps of its four tokens: the largest score, its lane's share of the sum of
// weights, and every eighth four channels of the weighted values.
template <int K>
struct CompositeRows {
  static constexpr int fours = K / (4 * lanes_per_row);
  float largest[rows_per_thread], sum[rows_per_thread];
  Four output[rows_per_thread][fours];

  IP_DEVICE CompositeRows() {
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) {
      largest[i] = ip::float_of(0xff800000u);  // -infinity: rescales what is not there by 0
      sum[i] = 0;
      IP_UNROLL
      for (int m = 0; m < fours; ++m) output[i][m] = {};
    }
  }

  // Weights of the tile's tokens from `first` on in place of their products; what was summed before
  // is rescaled. Every row has a token in its first tile, so that its largest score is finite.
  IP_DEVICE void weigh(const CompositeTile<K>& tile, std::int64_t first, float scale,
                       const float (&product)[rows_per_thread][others_per_thread]) {
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) {
      float score[others_per_thread], most = ip::float_of(0xff800000u);
      IP_UNROLL
      for (int j = 0; j < others_per_thread; ++j) {
        const bool seen = first + tile_other() + j * lanes_per_row <= tile.token(i);
        score[j] = seen ? ip::mul(scale, product[i][j]) : ip::float_of(0xff800000u);
        most = ip::max_number(most, score[j]);
      }
      most = ip::max_number(largest[i], max_over(lanes_per_row, most));
      const float factor = exp_f32(ip::sub(largest[i], most));
      largest[i] = most;
      sum[i] = ip::mul(sum[i], factor);
      float* const weights =
          tile.weights + (tile_row() + i * row_step) * weight_stride + tile_other();
      IP_UNROLL
      for (int j = 0; j < others_per_thread; ++j) {
        const float weight = exp_f32(ip::sub(score[j], most));
        sum[i] = ip::add(sum[i], weight);
        ip::store_shared(weights + j * lanes_per_row, weight);
      }
      IP_UNROLL
      for (int m = 0; m < fours; ++m) {
        IP_UNROLL
        for (int x = 0; x < 4; ++x) output[i][m].x[x] = ip::mul(output[i][m].x[x], factor);
      }
    }
  }

  IP_DEVICE void add_values(const CompositeTile<K>& tile) {
    const float* const weights = tile.weights + tile_row() * weight_stride;
    for (int s = 0; s < tile_others; s += 4) {
      Four weight[rows_per_thread];
      IP_UNROLL
      for (int i = 0; i < rows_per_thread; ++i)
        weight[i] = load_four(weights + i * row_step * weight_stride + s);
      IP_UNROLL
      for (int r = 0; r < 4; ++r) {
        IP_UNROLL
        for (int m = 0; m < fours; ++m) {
          const Four value =
              load_four(tile.values + (s + r) * K + 4 * (tile_other() + m * lanes_per_row));
          IP_UNROLL
          for (int i = 0; i < rows_per_thread; ++i) {
            IP_UNROLL
            for (int x = 0; x < 4; ++x)
              output[i][m].x[x] = ip::fma(weight[i].x[r], value.x[x], output[i][m].x[x]);
          }
        }
      }
    }
  }

  IP_DEVICE void store(const CompositeTile<K>& tile, float* outputs) {
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) {
      const float total = sum_over(lanes_per_row, sum[i]);
      if (tile.token(i) >= tile.end) continue;
      float* const to = outputs + tile.token(i) * tile.pitch + tile.head * K + 4 * tile_other();
      IP_UNROLL
      for (int m = 0; m < fours; ++m) {
        Four quotient;
        IP_UNROLL
        for (int x = 0; x < 4; ++x) quotient.x[x] = ip::div(output[i][m].x[x], total);
        ip::store_global(reinterpret_cast<Four*>(to + m * 4 * lanes_per_row), quotient);
      }
    }
  }
};

template <int K, DType T>
IP_KERNEL(tile_threads, tile_blocks_per_sm)
void composite_attention_kernel(CompositeParams p) {
  const CompositeTile<K> tile(p);
  const std::int64_t at = tile.head * K;
  stage_tile<K, DType::f32, tile_rows>(p.queries + 4 * at, tile.pitch, tile.first, tile.end,
                                       tile.queries, K);
  CompositeRows<K> rows;
  for (std::int64_t first = 0; first < tile.end; first += tile_others) {
    stage_tile<K, DType::f32, tile_others>(p.keys + 4 * at, tile.pitch, first, tile.end, tile.keys,
                                           K + tile_padding);
    stage_tile<K, T, tile_others>(p.values + bytes_of(T) * at, tile.pitch, first, tile.end,
                                  tile.values, K);
    ip::sync_block();
    float product[rows_per_thread][others_per_thread] = {};
    multiply_tile<K>(tile.queries, tile.keys, product);
    rows.weigh(tile, first, p.scale, product);
    ip::sync_warp();  // a warp reads the weights of its own rows only
    rows.add_values(tile);
    ip::sync_block();  // before the next keys and values
  }
  rows.store(tile, p.outputs);
}

inline std::optional<std::string> composite_attention_unsupported(const OpArgs& any) {
  const auto* args = attention_args<CompositeAttentionArgs>(any);
  if (args == nullptr) return "it attends to composite vectors";
  return bad_composite(*args);
}

inline void composite_attention_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<CompositeAttentionArgs>(any);
  const CompositeParams params = {reinterpret_cast<const std::byte*>(args.queries),
                                  reinterpret_cast<const std::byte*>(args.keys),
                                  static_cast<const std::byte*>(args.values),
                                  args.tokens,
                                  args.heads,
                                  args.scale,
                                  args.outputs};
  with_row_instance(args.head_dim, args.storage, [&]<int K, DType T>() {
    ip_launch(context, blocks_for(args.tokens, tile_rows) * args.heads, tile_threads,
              composite_shared_bytes(K), composite_attention_kernel<K, T>, params);
  });
}

inline Work composite_attention_work(const OpArgs& any) {
  return declared_composite_attention(the_attention_args<CompositeAttentionArgs>(any));
}

extern const Kernel composite_attention;
const Kernel composite_attention = {"composite_attention", INDEXPOOL_TARGET_NAME,
                                    composite_attention_unsupported, composite_attention_launch,
                                    composite_attention_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
