// linear_attention_step: the gated delta rule, token by token (model/attention.hpp). Per head, with
// q, k normalised and the state S [K, V]:
//
//   S = diag(exp(log_decay)) S;  u = beta (v - S^T k);  S = S + k u^T;  outputs = scale S^T q
//
// A block per sequence, head and 32 value channels; four lanes keep a column of S in registers for
// all tokens of the sequence and add up their sums over K. A warp each brings a token's query, key
// and decay into shared memory, two tokens' worth of it, so that one barrier a token does. Bytes
// per head: S in and out once; per token V elements in and V f32 out, and V / 32 times 2 K elements
// and K decays, all but the first from the L2.
#pragma once

#include "indexpool/kernels/attention/linear.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// Query, key and decay of a token [K] each, by a warp each.
template <int K, DType T>
IP_DEVICE void stage_token(const LinearParams& p, std::int64_t row, float* shared) {
  const int part = ip::warp_index();
  float* const to = shared + part * K;
  if (part < 2) stage_normalised<K, T>(part == 0 ? p.queries : p.keys, row, p.eps, to);
  if (part != 2) return;
  for (int c = ip::lane_index(); c < K; c += 32)
    ip::store_shared(to + c, exp_f32(ip::load_global(p.log_decay + row * K + c)));
}

template <int K, DType T>
IP_KERNEL(step_threads, step_blocks_per_sm)
void linear_attention_step_kernel(LinearParams p) {
  const int blocks = p.value_dim / step_columns;
  LinearColumn<K> mine(p, ip::block_index() / blocks, static_cast<int>(ip::block_index() % blocks));
  float* const shared = reinterpret_cast<float*>(ip::dynamic_shared());
  for (int t = 0; t < mine.sequence.tokens; ++t) {
    float* const rows = shared + t % 2 * 3 * K;
    stage_token<K, T>(p, mine.row(p, t), rows);
    const LinearToken token = mine.template token<T>(p, t);
    // A warp that is ahead writes the other half; it is back here before it writes this one again.
    ip::sync_block();
    mine.decay(rows + 2 * K);
    const float remembered = mine.dot(rows + K);
    mine.add(rows + K, ip::mul(token.beta, ip::sub(token.value, remembered)));
    mine.write(p, token.row, ip::mul(p.scale, mine.dot(rows)));
  }
  mine.store(p, ip::block_index() / blocks);
}

inline std::optional<std::string> linear_attention_step_unsupported(const OpArgs& any) {
  const auto* args = attention_args<LinearStepArgs>(any);
  if (args == nullptr) return "it steps through linear attention";
  return bad_linear(args->linear);
}

inline void linear_attention_step_launch(const OpArgs& any, LaunchContext& context) {
  const LinearAttentionArgs& args = the_attention_args<LinearStepArgs>(any).linear;
  with_row_instance(args.key_dim, args.storage, [&]<int K, DType T>() {
    const std::int64_t blocks = args.sequence_count * args.heads * (args.value_dim / step_columns);
    ip_launch(context, blocks, step_threads, step_shared_bytes(K),
              linear_attention_step_kernel<K, T>, linear_params(args));
  });
}

inline Work linear_attention_step_work(const OpArgs& any) {
  return declared_linear_step(the_attention_args<LinearStepArgs>(any).linear);
}

extern const Kernel linear_attention_step;
const Kernel linear_attention_step = {"linear_attention_step", INDEXPOOL_TARGET_NAME,
                                      linear_attention_step_unsupported,
                                      linear_attention_step_launch, linear_attention_step_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
