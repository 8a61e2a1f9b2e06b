// Traffic of the kernels that know no groups: softmaxes, sums of rows, the hidden part of a gate.
#include <algorithm>
#include <bit>

#include "indexpool/kernels/backward/declared.hpp"
#include "indexpool/kernels/backward/geometry.hpp"
#include "indexpool/kernels/backward/issued.hpp"
#include "indexpool/kernels/policy/group_access.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels {
namespace {

// Sum of f(first lane, end) -> nothing over warps of `threads` lanes in a row.
template <class F>
void over_lanes(std::int64_t threads, F&& f) {
  for (std::int64_t first = 0; first < threads; first += 32)
    f(first, std::min<std::int64_t>(first + 32, threads));
}

// 16-byte instructions of eight elements a lane, at the addresses `at(lane)`.
template <class At>
GlobalAccess piece_access(std::int64_t first, std::int64_t end, DType dtype, const At& at) {
  GlobalAccess sum;
  WarpInstruction instruction;
  for (std::int64_t part = 0; part < (dtype == DType::f32 ? 2 : 1); ++part) {
    for (std::int64_t lane = first; lane < end; ++lane) instruction.touch(at(lane) + 16 * part, 16);
    sum += instruction.take();
  }
  return sum;
}
template <class At>
GlobalAccess word_access(std::int64_t first, std::int64_t end, const At& at) {
  WarpInstruction instruction;
  for (std::int64_t lane = first; lane < end; ++lane) instruction.touch(at(lane), 4);
  return instruction.take();
}

Work lanes_work(std::int64_t threads, std::int64_t blocks_per_sm) {
  Work work;
  work.threads_per_block = policy_threads;
  work.blocks = blocks_for(threads, policy_threads);
  work.blocks_per_sm = blocks_per_sm;
  return work;
}

// One warp of sum_rows.
struct SumWarp {
  const SumRowsArgs& args;
  std::int64_t segment, tile;
  std::int64_t lanes = sum_lanes(args.width), words = words_per_unit(args.width);

  bool adds(std::int64_t lane, std::int64_t j) const {
    return column(lane) < args.width && j < args.host_first[segment + 1];
  }
  std::int64_t column(std::int64_t lane) const { return (tile * lanes + lane % lanes) * words; }
  void touch(WarpInstruction& instruction, const float* base, std::int64_t row,
             std::int64_t lane) const {
    instruction.touch(address_of(base) + 4 * (row * args.width + column(lane)), 4 * words);
  }

  Traffic traffic() const {
    Traffic one;
    WarpInstruction list, values, stores, bounds;
    for (std::int64_t end : {1, 0}) {
      bounds.touch(address_of(args.first + segment + end), 8);
      add_loads(one, bounds.take());
    }
    const std::int64_t at_once = 32 / lanes;
    for (std::int64_t at = args.host_first[segment]; at < args.host_first[segment + 1];
         at += at_once) {
      for (std::int64_t lane = 0; lane < 32; ++lane) {
        const std::int64_t j = at + lane / lanes;
        if (!adds(lane, j)) continue;
        if (args.rows != nullptr) list.touch(address_of(args.rows + j), 4);
        touch(values, args.values, args.rows == nullptr ? j : args.host_rows[j], lane);
      }
      add_loads(one, list.take());
      add_loads(one, values.take());
    }
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      if (column(lane) < args.width) touch(stores, args.sums, segment, lane);
    add_stores(one, stores.take());
    one.shuffles = words * std::countr_zero(static_cast<std::uint64_t>(at_once));
    return one;
  }
};

}  // namespace

Work declared_sum_rows(const SumRowsArgs& args) {
  const std::int64_t tiles = sum_tiles(args.width), warps = args.segments * tiles;
  Work work = lanes_work(warps * 32, sum_rows_blocks_per_sm);
  std::int64_t rows = 0;
  for (std::int64_t s = 0; s < args.segments; ++s) {
    rows += args.host_first[s + 1] - args.host_first[s];
    for (std::int64_t tile = 0; tile < tiles; ++tile)
      work.traffic += SumWarp{args, s, tile}.traffic();
  }
  const std::int64_t lists = args.rows == nullptr ? 0 : 4 * rows;
  work.unique_read = Bytes(rows * args.width * 4 + lists + (args.segments + 1) * 8);
  work.unique_write = Bytes(args.segments * args.width * 4);
  work.f32_flop = Flop(static_cast<double>(rows) * args.width);
  work.in_flight_per_block =
      Bytes(std::int64_t{policy_threads} * rows_in_flight * 4 * words_per_unit(args.width));
  return with_issue(work, sum_rows_issue(args));
}

Work declared_channel_softmax_backward(const ChannelSoftmaxBackwardArgs& args) {
  const std::int64_t lanes = args.group_count * (args.head_dim / quad_channels);
  const std::int64_t bytes = args.group_count * args.index_kpool * args.head_dim * 4;
  const int capacity = channel_capacity(args.index_kpool);
  Work work = lanes_work(lanes, softmax_backward_blocks_per_sm(capacity));
  add_loads(work.traffic, {2 * bytes, 2 * bytes / sector_bytes});
  add_stores(work.traffic, {bytes, bytes / sector_bytes});
  work.unique_read = work.traffic.global_load;
  work.unique_write = work.traffic.global_store;
  work.f32_flop = Flop(static_cast<double>(bytes));  // four for each weight
  work.in_flight_per_block = Bytes(std::int64_t{policy_threads} * 2 * 16 * args.index_kpool);
  return with_issue(work, channel_softmax_backward_issue(args));
}

Work declared_role_softmax_backward(const RoleSoftmaxBackwardArgs& args) {
  const std::int64_t lanes = role_lanes(args.index_kpool), per_warp = 32 / lanes;
  const std::int64_t row = std::int64_t{args.index_kpool} * 4;
  Work work = lanes_work(args.sets * lanes, role_blocks_per_sm);
  for (std::int64_t first = 0; first < args.sets; first += per_warp) {
    const std::int64_t bytes = std::min(per_warp, args.sets - first) * row;
    const auto access = [&](const float* base) {
      return GlobalAccess{bytes, sectors_of(address_of(base) + first * row, bytes)};
    };
    add_loads(work.traffic, access(args.pool_weights));
    add_loads(work.traffic, access(args.grad_weights));
    add_stores(work.traffic, access(args.grad_matrix));
    work.traffic.shuffles += std::countr_zero(static_cast<std::uint64_t>(lanes));
  }
  work.unique_read = work.traffic.global_load;
  work.unique_write = work.traffic.global_store;
  work.f32_flop = Flop(4.0 * static_cast<double>(args.sets * args.index_kpool));
  work.in_flight_per_block = Bytes(std::int64_t{2} * policy_threads / lanes * row);
  return with_issue(work, role_softmax_backward_issue(args));
}

Work declared_hidden_states_backward(const HiddenStatesBackwardArgs& args) {
  const std::int64_t pieces = args.hidden / channels_per_lane, width = args.hidden + args.head_dim;
  Work work = lanes_work(args.tokens * pieces, hidden_backward_blocks_per_sm);
  const auto channel = [&](std::int64_t lane) { return lane % pieces * channels_per_lane; };
  over_lanes(args.tokens * pieces, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t h = 0; h < args.heads; ++h) {
      add_loads(work.traffic, word_access(first, end, [&](std::int64_t lane) {
                  return address_of(args.grad_hidden_gates) + 4 * (lane / pieces * args.heads + h);
                }));
      add_loads(work.traffic, piece_access(first, end, args.storage, [&](std::int64_t lane) {
                  return address_of(args.gate_weight) +
                         (h * width + channel(lane)) * info(args.storage).bytes;
                }));
    }
    add_stores(work.traffic, piece_access(first, end, DType::f32, [&](std::int64_t lane) {
                 return address_of(args.grad_hidden_states) + lane * 4 * channels_per_lane;
               }));
  });
  const std::int64_t heads = args.tokens > 0 ? args.heads : 0;
  work.unique_read =
      Bytes(args.tokens * args.heads * 4 + heads * args.hidden * info(args.storage).bytes);
  work.unique_write = Bytes(args.tokens * args.hidden * 4);
  work.f32_flop = Flop(2.0 * static_cast<double>(args.tokens * args.heads) * args.hidden);
  work.in_flight_per_block = Bytes(std::int64_t{policy_threads} * 32);
  return with_issue(work, hidden_states_backward_issue(args));
}

Work declared_hidden_gate_backward(const HiddenGateBackwardArgs& args) {
  const std::int64_t pieces = args.hidden / channels_per_lane, heads = args.heads;
  const std::int64_t rows = blocks_for(args.tokens, gate_tokens) * heads;
  Work work = lanes_work(rows * pieces, hidden_backward_blocks_per_sm);
  const auto token = [&](std::int64_t lane) { return lane / pieces / heads * gate_tokens; };
  over_lanes(rows * pieces, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t k = 0; k < gate_tokens; ++k) {
      std::int64_t last = first;  // lanes of earlier blocks have more tokens
      while (last < end && token(last) + k < args.tokens) ++last;
      add_loads(work.traffic, word_access(first, last, [&](std::int64_t lane) {
                  return address_of(args.grad_hidden_gates) +
                         4 * ((token(lane) + k) * heads + lane / pieces % heads);
                }));
      add_loads(work.traffic, piece_access(first, last, args.storage, [&](std::int64_t lane) {
                  const std::int64_t channel = lane % pieces * channels_per_lane;
                  return address_of(args.hidden_states) +
                         ((token(lane) + k) * args.hidden + channel) * info(args.storage).bytes;
                }));
    }
    add_stores(work.traffic, piece_access(first, end, DType::f32, [&](std::int64_t lane) {
                 return address_of(args.grad_gate) + lane * 4 * channels_per_lane;
               }));
  });
  work.unique_read =
      Bytes(args.tokens * (heads * 4 + std::int64_t{args.hidden} * info(args.storage).bytes));
  work.unique_write = Bytes(rows * args.hidden * 4);
  work.f32_flop = Flop(2.0 * static_cast<double>(args.tokens * heads) * args.hidden);
  work.in_flight_per_block = Bytes(std::int64_t{policy_threads} * 32 * gate_tokens / 4);
  return with_issue(work, hidden_gate_backward_issue(args));
}

}  // namespace indexpool::kernels
