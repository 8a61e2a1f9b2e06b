// linear_attention_chunk: the gated delta rule in chunks of linear_chunk_tokens (the WY form), for
// prefill. Per head and chunk, with q, k normalised, G_i the log decays added up to token i, and
// F_ij = exp(G_i - G_j), j <= i, so that no exponential exceeds 1:
//
//   A_ij = beta_i sum_c k_ic k_jc F_ijc (j < i),    R_ij = sum_c q_ic k_jc F_ijc (j <= i)
//   u_i = beta_i (v_i - (k_i F_i0) S) - sum_(j < i) A_ij u_j
//   outputs_i = scale ((q_i F_i0) S + sum_(j <= i) R_ij u_j)
//   S = diag(F_n0) S + sum_j (k_j F_nj) u_j^T
//
// A block per sequence and head. Warps make A and R row by row, a lane for every 32nd channel;
// four lanes keep a column of S and its u in registers. Bytes per head: as linear_attention_step.
#pragma once

#include "indexpool/kernels/attention/linear.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

inline constexpr int chunk_tokens = linear_chunk_tokens;

// A block's shared memory.
template <int K>
struct ChunkMemory {
  float* queries;  // [chunk, K] normalised, later times F_i0
  float* keys;     // the same
  float* to_end;   // [chunk, K]: k_j F_nj
  float* decays;   // [chunk + 1, K]: G_1 ..., the last row F_n0
  float* a;        // [chunk, chunk], 0 from the diagonal on
  float* read;     // [chunk, chunk], 0 beyond the diagonal

  IP_DEVICE ChunkMemory()
      : queries(reinterpret_cast<float*>(ip::dynamic_shared())),
        keys(queries + chunk_tokens * K),
        to_end(keys + chunk_tokens * K),
        decays(to_end + chunk_tokens * K),
        a(decays + (chunk_tokens + 1) * K),
        read(a + chunk_tokens * chunk_tokens) {}
  IP_DEVICE float* through() const { return decays + chunk_tokens * K; }
};

// Tokens [first, first + n) of the sequence: rows and accumulated decays.
template <int K, DType T>
IP_DEVICE void stage_chunk(const LinearParams& p, const LinearColumn<K>& mine, int first, int n,
                           const ChunkMemory<K>& memory) {
  for (int r = ip::warp_index(); r < 2 * n; r += ip::block_threads() / 32) {
    const int i = r / 2;
    const bool query = r % 2 == 0;
    stage_normalised<K, T>(query ? p.queries : p.keys, mine.row(p, first + i), p.eps,
                           (query ? memory.queries : memory.keys) + i * K);
  }
  for (int c = ip::thread_index(); c < K; c += ip::block_threads()) {
    float sum = 0;
    for (int i = 0; i < n; ++i) {
      sum = ip::add(sum, ip::load_global(p.log_decay + mine.row(p, first + i) * K + c));
      ip::store_shared(memory.decays + i * K + c, sum);
    }
  }
}

// Rows of A and R.
template <int K>
IP_DEVICE void multiply_rows(const LinearParams& p, const LinearColumn<K>& mine, int first, int n,
                             const ChunkMemory<K>& memory) {
  constexpr int parts = K / 32;
  const int lane = ip::lane_index();
  for (int i = ip::warp_index(); i < n; i += ip::block_threads() / 32) {
    float query[parts], key[parts], decay[parts];
    IP_UNROLL
    for (int m = 0; m < parts; ++m) {
      query[m] = ip::load_shared(memory.queries + i * K + 32 * m + lane);
      key[m] = ip::load_shared(memory.keys + i * K + 32 * m + lane);
      decay[m] = ip::load_shared(memory.decays + i * K + 32 * m + lane);
    }
    const float beta = ip::load_global(p.beta + mine.row(p, first + i));
    float a = 0, read = 0;  // of column `lane`
    for (int j = 0; j <= i; ++j) {
      float of_key = 0, of_query = 0;
      IP_UNROLL
      for (int m = 0; m < parts; ++m) {
        const float since = ip::load_shared(memory.decays + j * K + 32 * m + lane);
        const float other = ip::mul(ip::load_shared(memory.keys + j * K + 32 * m + lane),
                                    exp_f32(ip::sub(decay[m], since)));
        of_key = ip::fma(key[m], other, of_key);
        of_query = ip::fma(query[m], other, of_query);
      }
      of_key = sum_over(32, of_key);
      of_query = sum_over(32, of_query);
      if (lane != j) continue;
      a = j < i ? ip::mul(beta, of_key) : 0.0f;
      read = of_query;
    }
    if (lane >= chunk_tokens) continue;
    ip::store_shared(memory.a + i * chunk_tokens + lane, a);
    ip::store_shared(memory.read + i * chunk_tokens + lane, read);
  }
}

// Queries and keys decayed from the chunk's start, keys to its end.
template <int K>
IP_DEVICE void decay_rows(int n, const ChunkMemory<K>& memory) {
  const float* const last = memory.decays + (n - 1) * K;
  for (int e = ip::thread_index(); e < n * K; e += ip::block_threads()) {
    const float since_start = ip::load_shared(memory.decays + e);
    const float factor = exp_f32(since_start);
    const float query = ip::load_shared(memory.queries + e);
    const float key = ip::load_shared(memory.keys + e);
    const float rest = ip::sub(ip::load_shared(last + e % K), since_start);
    ip::store_shared(memory.queries + e, ip::mul(query, factor));
    ip::store_shared(memory.keys + e, ip::mul(key, factor));
    ip::store_shared(memory.to_end + e, ip::mul(key, exp_f32(rest)));
  }
  for (int c = ip::thread_index(); c < K; c += ip::block_threads())
    ip::store_shared(memory.through() + c, exp_f32(ip::load_shared(last + c)));
}

// sum_m row_m u_m, onto `sum`, of a row of A (negated) or R.
IP_DEVICE float add_products(const float* row, float sign, const float (&u)[chunk_tokens],
                             float sum) {
  IP_UNROLL
  for (int m = 0; m < chunk_tokens; m += 4) {
    const Four four = load_four(row + m);
    IP_UNROLL
    for (int i = 0; i < 4; ++i) sum = ip::fma(sign * four.x[i], u[m + i], sum);
  }
  return sum;
}

// Outputs of this thread's value channel, and its part of the state after the chunk.
template <int K, DType T>
IP_DEVICE void advance_column(const LinearParams& p, LinearColumn<K>& mine, int first, int n,
                              const ChunkMemory<K>& memory) {
  float u[chunk_tokens];
  IP_UNROLL
  for (int m = 0; m < chunk_tokens; ++m) u[m] = 0;
  for (int i = 0; i < n; ++i) {
    const LinearToken token = mine.template token<T>(p, first + i);
    const float right = ip::mul(token.beta, ip::sub(token.value, mine.dot(memory.keys + i * K)));
    const float update = add_products(memory.a + i * chunk_tokens, -1.0f, u, right);
    IP_UNROLL
    for (int m = 0; m < chunk_tokens; ++m) u[m] = m == i ? update : u[m];
    const float read =
        add_products(memory.read + i * chunk_tokens, 1.0f, u, mine.dot(memory.queries + i * K));
    mine.write(p, token.row, ip::mul(p.scale, read));
  }
  mine.decay(memory.through());
  for (int j = 0; j < n; ++j) {
    float update = 0;
    IP_UNROLL
    for (int m = 0; m < chunk_tokens; ++m) update = m == j ? u[m] : update;
    mine.add(memory.to_end + j * K, update);
  }
}

template <int K, DType T>
IP_KERNEL(chunk_threads_most, chunk_blocks_per_sm)
void linear_attention_chunk_kernel(LinearParams p) {
  LinearColumn<K> mine(p, ip::block_index(), 0);
  const ChunkMemory<K> memory;
  for (int first = 0; first < mine.sequence.tokens; first += chunk_tokens) {
    const int left = mine.sequence.tokens - first;
    const int n = left < chunk_tokens ? left : chunk_tokens;
    stage_chunk<K, T>(p, mine, first, n, memory);
    ip::sync_block();
    multiply_rows<K>(p, mine, first, n, memory);
    ip::sync_block();
    decay_rows<K>(n, memory);
    ip::sync_block();
    advance_column<K, T>(p, mine, first, n, memory);
    ip::sync_block();  // before the next chunk's rows
  }
  mine.store(p, ip::block_index());
}

inline std::optional<std::string> linear_attention_chunk_unsupported(const OpArgs& any) {
  const auto* args = attention_args<LinearChunkArgs>(any);
  if (args == nullptr) return "it goes through linear attention in chunks";
  return bad_linear(args->linear);
}

inline void linear_attention_chunk_launch(const OpArgs& any, LaunchContext& context) {
  const LinearAttentionArgs& args = the_attention_args<LinearChunkArgs>(any).linear;
  with_row_instance(args.key_dim, args.storage, [&]<int K, DType T>() {
    ip_launch(context, args.sequence_count * args.heads, args.value_dim * column_parts,
              chunk_shared_bytes(K), linear_attention_chunk_kernel<K, T>, linear_params(args));
  });
}

inline Work linear_attention_chunk_work(const OpArgs& any) {
  return declared_linear_chunk(the_attention_args<LinearChunkArgs>(any).linear);
}

extern const Kernel linear_attention_chunk;
const Kernel linear_attention_chunk = {"linear_attention_chunk", INDEXPOOL_TARGET_NAME,
                                       linear_attention_chunk_unsupported,
                                       linear_attention_chunk_launch, linear_attention_chunk_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
