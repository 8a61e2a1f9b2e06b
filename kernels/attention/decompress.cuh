// decompress: the first launch of composite attention (article A), what it scores with:
//
//   queries[t, h, o] = sum_c query_weight[h, o, c] composites[t, h, c],  keys likewise
//
// composites [T, H, D], weights [H, D, D] storage dtype, queries and keys [T, H, D] f32. A block
// for 64 tokens of a head, 32 outputs at a time, by fused multiply-adds: they stay in f32, which
// matrix cores would not take, and cost less than the attention from 2 D tokens on. Bytes per
// block: its composites in, both weights in (from the L2 but for the first block), 8 D a token out.
#pragma once

#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/tile.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct DecompressParams {
  const std::byte* composites;
  const std::byte* query_weight;
  const std::byte* key_weight;
  std::int64_t tokens;
  std::int32_t heads;
  float* queries;
  float* keys;
};

template <int K, DType T>
IP_KERNEL(tile_threads, tile_blocks_per_sm)
void decompress_kernel(DecompressParams p) {
  const std::int64_t head = ip::block_index() % p.heads, pitch = std::int64_t{p.heads} * K;
  const std::int64_t first = ip::block_index() / p.heads * tile_rows;
  float* const composites = reinterpret_cast<float*>(ip::dynamic_shared());
  float* const weights = composites + tile_rows * K;
  stage_tile<K, T, tile_rows>(p.composites + head * K * bytes_of(T), pitch, first, p.tokens,
                              composites, K);
  for (int output = 0; output < 2 * K; output += tile_others) {
    const bool of_query = output < K;
    const std::byte* const weight =
        (of_query ? p.query_weight : p.key_weight) + head * K * K * bytes_of(T);
    const int row = output % K;
    stage_tile<K, T, tile_others>(weight, K, row, K, weights, K + tile_padding);
    ip::sync_block();
    float product[rows_per_thread][others_per_thread] = {};
    multiply_tile<K>(composites, weights, product);
    float* const to = (of_query ? p.queries : p.keys) + head * K + row + tile_other();
    IP_UNROLL
    for (int i = 0; i < rows_per_thread; ++i) {
      const std::int64_t token = first + tile_row() + i * row_step;
      if (token >= p.tokens) continue;
      IP_UNROLL
      for (int j = 0; j < others_per_thread; ++j)
        ip::store_global(to + token * pitch + j * lanes_per_row, product[i][j]);
    }
    ip::sync_block();  // before the next rows of weights
  }
}

inline std::optional<std::string> decompress_unsupported(const OpArgs& any) {
  const auto* args = attention_args<DecompressArgs>(any);
  if (args == nullptr) return "it decompresses composite vectors";
  return bad_decompress(*args);
}

inline void decompress_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<DecompressArgs>(any);
  const DecompressParams params = {static_cast<const std::byte*>(args.composites),
                                   static_cast<const std::byte*>(args.query_weight),
                                   static_cast<const std::byte*>(args.key_weight),
                                   args.tokens,
                                   args.heads,
                                   args.queries,
                                   args.keys};
  with_row_instance(args.head_dim, args.storage, [&]<int K, DType T>() {
    ip_launch(context, blocks_for(args.tokens, tile_rows) * args.heads, tile_threads,
              decompress_shared_bytes(K), decompress_kernel<K, T>, params);
  });
}

inline Work decompress_work(const OpArgs& any) {
  return declared_decompress(the_attention_args<DecompressArgs>(any));
}

extern const Kernel decompress;
const Kernel decompress = {"decompress", INDEXPOOL_TARGET_NAME, decompress_unsupported,
                           decompress_launch, decompress_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
