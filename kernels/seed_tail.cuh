// seed_tail: keeps the last rows of a prefill step in the tail rings, keys and gate scores as they
// arrived. One TailJob per row, D / 8 lanes each; two rows in, two ring entries out.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/declared.hpp"
#include "indexpool/kernels/hadamard.cuh"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/paged.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct SeedTailParams {
  const void* keys;
  const void* gate_scores;
  const TailJob* jobs;
  std::int64_t job_count;
  TailRing tail;
};

template <int D, DType Storage>
IP_KERNEL(seed_tail_threads, seed_tail_blocks_per_sm)
void seed_tail_kernel(SeedTailParams params) {
  const std::int64_t index =
      (ip::block_index() * seed_tail_threads + ip::thread_index()) / lanes_of(D);
  if (index >= params.job_count) return;
  const int byte = ip::thread_index() % lanes_of(D) * channels_per_lane * bytes_of(Storage);
  const TailJob job = load_record(params.jobs + index);
  const auto key = load_piece<Storage>(row_at<D, Storage>(params.keys, job.row) + byte);
  const auto gate = load_piece<Storage>(row_at<D, Storage>(params.gate_scores, job.row) + byte);
  const Ring<D, Storage> ring = {params.tail.base + job.tail_block * params.tail.block_stride,
                                 params.tail.ring, job.ring_index};
  store_piece(ring.entry(RingHalf::keys, 0) + byte, key);
  store_piece(ring.entry(RingHalf::gate_scores, 0) + byte, gate);
}

inline std::optional<std::string> seed_tail_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<SeedTailArgs>(&any);
  if (args == nullptr) return "it fills tail rings";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  return bad_ring(args->tail, args->shape.config);
}

inline void seed_tail_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<SeedTailArgs>(any);
  const SeedTailParams params = {args.keys, args.gate_scores, args.jobs, args.job_count, args.tail};
  with_instance(args.shape, [&]<class I>(I) {
    const int rows_per_block = seed_tail_threads / lanes_of(I::head_dim);
    ip_launch(context, blocks_for(args.job_count, rows_per_block), seed_tail_threads, 0,
              seed_tail_kernel<I::head_dim, I::storage>, params);
  });
}

inline Work seed_tail_work(const OpArgs& any) {
  return declared_seed_tail(std::get<SeedTailArgs>(any));
}

extern const Kernel seed_tail;
const Kernel seed_tail = {"seed_tail", INDEXPOOL_TARGET_NAME, seed_tail_unsupported,
                          seed_tail_launch, seed_tail_work};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
