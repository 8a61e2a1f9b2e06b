// What both kernels of linear attention share: parameters, a token's rows in shared memory, the
// part of the state that a thread keeps in registers.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/attention/checks.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/rows.cuh"
#include "indexpool/kernels/policy/group.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct LinearParams {
  const std::byte* queries;
  const std::byte* keys;
  const std::byte* values;
  const float* log_decay;
  const float* beta;
  const LinearSequence* sequences;
  std::int32_t heads, value_dim;
  float scale, eps;
  float* states;
  float* outputs;
};
inline LinearParams linear_params(const LinearAttentionArgs& args) {
  return {static_cast<const std::byte*>(args.queries),
          static_cast<const std::byte*>(args.keys),
          static_cast<const std::byte*>(args.values),
          args.log_decay,
          args.beta,
          args.sequences,
          args.heads,
          args.value_dim,
          args.scale,
          args.eps,
          args.states,
          args.outputs};
}

// A warp writes row x / sqrt(x . x + eps) of K channels to shared memory, lane by lane: channels
// l, l + 32, ..., their squares added in this order, then by a tree.
template <int K, DType T>
IP_DEVICE void stage_normalised(const std::byte* base, std::int64_t row, float eps, float* to) {
  float x[K / 32], squares = 0;
  IP_UNROLL
  for (int i = 0; i < K / 32; ++i) {
    x[i] = load_element<T>(base, row * K + 32 * i + ip::lane_index());
    squares = ip::fma(x[i], x[i], squares);
  }
  const float norm = ip::sqrt(ip::add(sum_over(32, squares), eps));
  IP_UNROLL
  for (int i = 0; i < K / 32; ++i)
    ip::store_shared(to + 32 * i + ip::lane_index(), ip::div(x[i], norm));
}

// What a token brings to a column of the state.
struct LinearToken {
  std::int64_t row;  // [N, H]
  float value, beta;
};

// A head of a sequence, and a thread's quarter of a column of its state: channels part * K / 4 on.
template <int K>
struct LinearColumn {
  static constexpr int channels = K / column_parts;
  LinearSequence sequence;
  std::int32_t head, column, part;
  float state[channels];

  // `block_of_head` of blocks that share a head: each takes as many columns as its lanes hold.
  IP_DEVICE LinearColumn(const LinearParams& p, std::int64_t head_of_all, int block_of_head)
      : sequence(load_record(p.sequences + head_of_all / p.heads)),
        head(static_cast<std::int32_t>(head_of_all % p.heads)),
        column(block_of_head * (ip::block_threads() / column_parts) +
               ip::warp_index() * columns_per_warp + ip::lane_index() % columns_per_warp),
        part(ip::lane_index() / columns_per_warp) {
    const float* from = at(p, sequence.state);
    IP_UNROLL
    for (int c = 0; c < channels; ++c, from += p.value_dim) state[c] = ip::load_global(from);
  }
  // The record is read once more: addresses kept since the load would take more registers than the
  // state itself.
  IP_DEVICE void store(const LinearParams& p, std::int64_t head_of_all) const {
    float* to = at(p, load_record(p.sequences + head_of_all / p.heads).state);
    IP_UNROLL
    for (int c = 0; c < channels; ++c, to += p.value_dim) ip::store_global(to, state[c]);
  }
  // Of token t: [N, H].
  IP_DEVICE std::int64_t row(const LinearParams& p, int t) const {
    return (sequence.first_row + t) * p.heads + head;
  }
  template <DType T>
  IP_DEVICE LinearToken token(const LinearParams& p, int t) const {
    const std::int64_t at = row(p, t);
    return {at, load_element<T>(p.values, at * p.value_dim + column), ip::load_global(p.beta + at)};
  }
  IP_DEVICE void write(const LinearParams& p, std::int64_t row, float output) const {
    if (part == 0) ip::store_global(p.outputs + row * p.value_dim + column, output);
  }

  // The column times x [K] in shared memory: four chains a lane, (0 + 1) + (2 + 3), then a tree
  // over the column's lanes, which all get the sum.
  IP_DEVICE float dot(const float* x) const {
    float sum[4] = {0, 0, 0, 0};
    IP_UNROLL
    for (int c = 0; c < channels; c += 4) {
      const Four four = load_four(x + part * channels + c);
      IP_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] = ip::fma(four.x[i], state[c + i], sum[i]);
    }
    float all = ip::add(ip::add(sum[0], sum[1]), ip::add(sum[2], sum[3]));
    for (int distance = columns_per_warp; distance < 32; distance *= 2)
      all = ip::add(all, ip::shuffle_xor(ip::full_mask, all, distance));
    return all;
  }
  IP_DEVICE void decay(const float* x) {
    IP_UNROLL
    for (int c = 0; c < channels; c += 4) {
      const Four four = load_four(x + part * channels + c);
      IP_UNROLL
      for (int i = 0; i < 4; ++i) state[c + i] = ip::mul(four.x[i], state[c + i]);
    }
  }
  IP_DEVICE void add(const float* x, float times) {
    IP_UNROLL
    for (int c = 0; c < channels; c += 4) {
      const Four four = load_four(x + part * channels + c);
      IP_UNROLL
      for (int i = 0; i < 4; ++i) state[c + i] = ip::fma(four.x[i], times, state[c + i]);
    }
  }

 private:
  IP_DEVICE float* at(const LinearParams& p, std::int64_t of_states) const {
    const std::int64_t matrix = of_states * p.heads + head;
    return p.states + (matrix * K + part * channels) * p.value_dim + column;
  }
};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
