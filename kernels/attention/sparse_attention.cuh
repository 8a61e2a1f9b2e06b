// sparse_attention: softmax attention over a selection of tokens,
// outputs = sum_j exp(scale q . k_j) v_j / sum_j exp(scale q . k_j), zeros where nothing is
// selected.
//
// queries [N, H, D], keys [L, Hk, D], values [L, Hk, V], selection [N, width] tokens or -1, outputs
// [N, H, V] f32. A block per query and head, in two passes: a token's key lies in D / 8
// neighbouring lanes, whose scores go to shared memory; then weights are made of them, and a
// token's value lies in V / 8 lanes, whose sums over their tokens are added through shared memory.
// Bytes per head and selected token: D + V elements, and its number twice.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct SparseParams {
  const std::byte* queries;
  const std::byte* keys;
  const std::byte* values;
  const std::int32_t* selection;
  std::int32_t heads, key_heads, head_dim, value_dim, width, padded_width;
  float scale;
  float* outputs;
};

struct SparseBlock {
  std::int64_t row, output;  // [N], [N, H]
  std::int32_t key_head;
  float* scores;   // [width], later weights
  float* maxima;   // of the warps
  float* sums;     // of the warps
  float* partial;  // eight channels of every thread

  IP_DEVICE explicit SparseBlock(const SparseParams& p)
      : row(ip::block_index() / p.heads),
        output(ip::block_index()),
        key_head(static_cast<std::int32_t>(ip::block_index() % p.heads * p.key_heads / p.heads)),
        scores(reinterpret_cast<float*>(ip::dynamic_shared())),
        maxima(scores + p.padded_width),
        sums(maxima + sparse_warps),
        partial(sums + sparse_warps) {}

  // The w-th selected token, -1 where there is none.
  IP_DEVICE std::int32_t token(const SparseParams& p, int w) const {
    return w < p.width ? ip::load_global(p.selection + row * p.width + w) : -1;
  }
};

// Rows of tokens spread over `lanes` neighbouring lanes; a batch of them in flight.
template <DType T>
struct SparseBatch {
  Piece<T> piece[sparse_batch];
  std::int32_t token[sparse_batch];

  IP_DEVICE void load(const SparseParams& p, const SparseBlock& block, const std::byte* rows,
                      int dim, int first) {
    const int lanes = dim / channels_per_lane, groups = sparse_threads / lanes;
    const int group = ip::thread_index() / lanes, lane = ip::thread_index() % lanes;
    IP_UNROLL
    for (int b = 0; b < sparse_batch; ++b) token[b] = block.token(p, first + b * groups + group);
    IP_UNROLL
    for (int b = 0; b < sparse_batch; ++b) {
      piece[b] = {};
      if (token[b] < 0) continue;
      const std::int64_t at = (std::int64_t{token[b]} * p.key_heads + block.key_head) * dim;
      piece[b] = load_piece<T>(rows + (at + lane * channels_per_lane) * bytes_of(T));
    }
  }
};

// Scores of all selected tokens to shared memory; returns the largest this thread's group saw.
template <DType T>
IP_DEVICE float score_tokens(const SparseParams& p, const SparseBlock& block) {
  const int lanes = p.head_dim / channels_per_lane, groups = sparse_threads / lanes;
  const int group = ip::thread_index() / lanes, lane = ip::thread_index() % lanes;
  float query[channels_per_lane];
  const std::int64_t at = block.output * p.head_dim + lane * channels_per_lane;
  unpack<T>(load_piece<T>(p.queries + at * bytes_of(T)), query);
  float largest = ip::float_of(0xff800000u);  // -infinity
  for (int first = 0; first < p.width; first += sparse_batch * groups) {
    SparseBatch<T> batch;
    batch.load(p, block, p.keys, p.head_dim, first);
    IP_UNROLL
    for (int b = 0; b < sparse_batch; ++b) {
      float key[channels_per_lane], sum = 0;
      unpack<T>(batch.piece[b], key);
      for (int i = 0; i < channels_per_lane; ++i) sum = ip::fma(query[i], key[i], sum);
      sum = sum_over(lanes, sum);
      const int w = first + b * groups + group;
      const float score = batch.token[b] < 0 ? ip::float_of(0xff800000u) : ip::mul(p.scale, sum);
      largest = ip::max_number(largest, score);
      if (lane == 0 && w < p.width) ip::store_shared(block.scores + w, score);
    }
  }
  return largest;
}

// Weights in place of the scores; returns this thread's share of their sum.
IP_DEVICE float make_weights_of(const SparseParams& p, const SparseBlock& block, float largest) {
  float sum = 0;
  for (int w = ip::thread_index(); w < p.width; w += sparse_threads) {
    const float weight = exp_f32(ip::sub(ip::load_shared(block.scores + w), largest));
    ip::store_shared(block.scores + w, weight);
    sum = ip::add(sum, weight);
  }
  return sum;
}

// Weighted values of this thread's group and channels, to shared memory.
template <DType T>
IP_DEVICE void add_values(const SparseParams& p, const SparseBlock& block) {
  const int lanes = p.value_dim / channels_per_lane, groups = sparse_threads / lanes;
  const int group = ip::thread_index() / lanes;
  float sum[channels_per_lane] = {};
  for (int first = 0; first < p.width; first += sparse_batch * groups) {
    SparseBatch<T> batch;
    batch.load(p, block, p.values, p.value_dim, first);
    IP_UNROLL
    for (int b = 0; b < sparse_batch; ++b) {
      // The weight of an unused place is 0, and so is what was not loaded.
      const int w = first + b * groups + group;
      const float weight = w < p.width ? ip::load_shared(block.scores + w) : 0.0f;
      float value[channels_per_lane];
      unpack<T>(batch.piece[b], value);
      for (int i = 0; i < channels_per_lane; ++i) sum[i] = ip::fma(weight, value[i], sum[i]);
    }
  }
  IP_UNROLL
  for (int i = 0; i < channels_per_lane; ++i)
    ip::store_shared(block.partial + i * sparse_stride + ip::thread_index(), sum[i]);
}

// One number of each warp, as every thread sees them.
struct alignas(16) OfWarps {
  float x[sparse_warps];
};
IP_DEVICE OfWarps exchange(float* shared, float value) {
  if (ip::lane_index() == 0) ip::store_shared(shared + ip::warp_index(), value);
  ip::sync_block();
  return ip::load_shared(reinterpret_cast<const OfWarps*>(shared));
}

template <DType T>
IP_KERNEL(sparse_threads, sparse_blocks_per_sm)
void sparse_attention_kernel(SparseParams p) {
  const SparseBlock block(p);
  const int c = ip::thread_index();
  float* const output = p.outputs + block.output * p.value_dim + c;
  const OfWarps maxima = exchange(block.maxima, max_over(32, score_tokens<T>(p, block)));
  const float largest = ip::max_number(ip::max_number(maxima.x[0], maxima.x[1]),
                                       ip::max_number(maxima.x[2], maxima.x[3]));
  if (largest == ip::float_of(0xff800000u)) {  // nothing is selected
    if (c < p.value_dim) ip::store_global(output, 0.0f);
    return;
  }
  const OfWarps sums = exchange(block.sums, sum_over(32, make_weights_of(p, block, largest)));
  const float total = ip::add(ip::add(sums.x[0], sums.x[1]), ip::add(sums.x[2], sums.x[3]));
  add_values<T>(p, block);
  ip::sync_block();
  if (c >= p.value_dim) return;
  const int lanes = p.value_dim / channels_per_lane;
  const float* const mine =
      block.partial + c % channels_per_lane * sparse_stride + c / channels_per_lane;
  float sum = 0;
  for (int g = 0; g < sparse_threads / lanes; ++g)
    sum = ip::add(sum, ip::load_shared(mine + g * lanes));
  ip::store_global(output, ip::div(sum, total));
}

inline std::optional<std::string> sparse_attention_unsupported(const OpArgs& any) {
  const auto* args = attention_args<SparseAttentionArgs>(any);
  if (args == nullptr) return "it attends to selected tokens";
  return bad_sparse(*args);
}

inline void sparse_attention_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = the_attention_args<SparseAttentionArgs>(any);
  const SparseParams params = {static_cast<const std::byte*>(args.queries),
                               static_cast<const std::byte*>(args.keys),
                               static_cast<const std::byte*>(args.values),
                               args.selection,
                               args.heads,
                               args.key_heads,
                               args.head_dim,
                               args.value_dim,
                               args.width,
                               static_cast<std::int32_t>(padded_width(args.width)),
                               args.scale,
                               args.outputs};
  const auto kernel = args.storage == DType::f32   ? sparse_attention_kernel<DType::f32>
                      : args.storage == DType::f16 ? sparse_attention_kernel<DType::f16>
                                                   : sparse_attention_kernel<DType::bf16>;
  ip_launch(context, args.rows * args.heads, sparse_threads, sparse_shared_bytes(args.width),
            kernel, params);
}

inline Work sparse_attention_work(const OpArgs& any) {
  return declared_sparse_attention(the_attention_args<SparseAttentionArgs>(any));
}

extern const Kernel sparse_attention;
const Kernel sparse_attention = {"sparse_attention", INDEXPOOL_TARGET_NAME,
                                 sparse_attention_unsupported, sparse_attention_launch,
                                 sparse_attention_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
