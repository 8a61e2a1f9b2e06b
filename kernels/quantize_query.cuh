// quantize_query: rotates each query head by the Hadamard matrix, rounds it as a pooled key is
// rounded, and quantises it with one scale per (row, head). Queries [N, H, D] in the storage dtype;
// D / 8 lanes a head (D = 128: two heads a warp). 2 D bytes in, D codes and a scale out per head.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/declared.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/quantise.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct QuantizeQueryParams {
  const void* queries;
  std::int64_t heads;  // rows * index_n_heads
  std::uint8_t* codes;
  float* scales;
};

template <class I>
IP_KERNEL(quantize_query_threads, quantize_query_blocks_per_sm)
void quantize_query_kernel(QuantizeQueryParams params) {
  constexpr int D = I::head_dim;
  constexpr int lanes = lanes_of(D);
  const std::int64_t thread = ip::block_index() * quantize_query_threads + ip::thread_index();
  if ((thread - ip::lane_index()) / lanes >= params.heads) return;  // the whole warp
  const std::int64_t head = thread / lanes;
  const bool active = head < params.heads;
  const int channel = ip::thread_index() % lanes * channels_per_lane;
  Piece<I::storage> query = {};
  if (active)
    query = load_piece<I::storage>(row_at<D, I::storage>(params.queries, head) +
                                   channel * bytes_of(I::storage));
  float x[channels_per_lane];
  unpack(query, x);
  if constexpr (I::hadamard) rotate<D>(x);
  for (int i = 0; i < channels_per_lane; ++i) x[i] = rounded_to<I::pooled>(x[i]);
  const Quantised quantised = quantise<D, I::cache, I::scale>(x);
  if (!active) return;
  ip::store_global(reinterpret_cast<Codes8*>(params.codes + head * D + channel), quantised.codes);
  if (channel == 0) ip::store_global(params.scales + head, quantised.scale);
}

inline std::optional<std::string> quantize_query_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<QuantizeQueryArgs>(&any);
  if (args == nullptr) return "it quantises queries";
  if (!args->shape.mode.quantised())
    return "numeric mode \"" + args->shape.mode.name + "\" keeps queries as they are";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  return std::nullopt;
}

inline void quantize_query_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<QuantizeQueryArgs>(any);
  const QuantizeQueryParams params = {args.queries, args.rows * args.shape.config.index_n_heads,
                                      args.codes, args.scales};
  with_instance(args.shape, [&]<class I>(I) {
    if constexpr (I::quantised) {
      const int heads_per_block = quantize_query_threads / lanes_of(I::head_dim);
      ip_launch(context, blocks_for(params.heads, heads_per_block), quantize_query_threads, 0,
                quantize_query_kernel<I>, params);
    }
  });
}

inline Work quantize_query_work(const OpArgs& any) {
  return declared_quantize_query(std::get<QuantizeQueryArgs>(any));
}

extern const Kernel quantize_query;
const Kernel quantize_query = {"quantize_query", INDEXPOOL_TARGET_NAME, quantize_query_unsupported,
                               quantize_query_launch, quantize_query_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
