// A group of vectors spread over neighbouring lanes (geometry.hpp): where it lies, its rows, and
// reductions over its lanes. Everything that depends on head_dim alone is known at run time but for
// the number of pieces, so that few instances serve all of 32 to 2048 channels.
#pragma once

#include <bit>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/policy/geometry.hpp"
#include "indexpool/kernels/policy/group_instances.hpp"
#include "indexpool/kernels/storage.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

struct GroupParams {
  const std::byte* vectors;
  const VectorGroup* groups;
  std::int64_t group_count;
  std::int64_t offsets[most_pooled_vectors];
  std::int32_t head_dim, lanes, lanes_log2, index_kpool;
};

inline GroupParams group_params(const GroupedVectors& grouped) {
  GroupParams params = {static_cast<const std::byte*>(grouped.vectors),
                        grouped.groups,
                        grouped.group_count,
                        {},
                        grouped.head_dim,
                        group_lanes(grouped.head_dim),
                        std::countr_zero(static_cast<unsigned>(group_lanes(grouped.head_dim))),
                        grouped.index_kpool};
  for (int i = 0; i < most_pooled_vectors; ++i) params.offsets[i] = grouped.offsets[i];
  return params;
}
inline std::int64_t group_blocks(const GroupedVectors& grouped) {
  return blocks_for(grouped.group_count, policy_threads / group_lanes(grouped.head_dim));
}

// This lane's group. All lanes of a warp stay, those without a group inactive; a warp without any
// returns at once.
struct GroupPlace {
  std::int64_t group;
  int lane;  // of the group
  bool active;
  bool warp_active;
};
IP_DEVICE GroupPlace place_of(const GroupParams& p) {
  const std::int64_t thread = ip::block_index() * policy_threads + ip::thread_index();
  const std::int64_t group = thread >> p.lanes_log2;
  return {group, ip::lane_index() & (p.lanes - 1), group < p.group_count,
          (thread - ip::lane_index()) >> p.lanes_log2 < p.group_count};
}

// The present vectors of a group in order: the j-th is vector absent + j. Vectors j >= present()
// stand for the absent ones, so that j goes through all places of a row of weights.
struct GroupVectors {
  VectorGroup record;
  std::int32_t index_kpool;

  IP_DEVICE int present() const { return index_kpool - record.absent; }
  IP_DEVICE int place(int j) const { return j < present() ? record.absent + j : j - present(); }
};
IP_DEVICE GroupVectors vectors_of(const GroupParams& p, const GroupPlace& place) {
  GroupVectors vectors = {{}, p.index_kpool};
  vectors.record.absent = p.index_kpool;
  if (place.active) vectors.record = load_record(p.groups + place.group);
  return vectors;
}

// A lane's channels of a row, as they lie in memory.
template <DType T, int Pieces>
struct Row {
  static constexpr int in_flight = vectors_in_flight(Pieces);
  Piece<T> piece[Pieces];
};
template <DType T, int Pieces>
IP_DEVICE Row<T, Pieces> load_row(const std::byte* row, int lane) {
  Row<T, Pieces> values;
  const std::byte* const at = row + lane * (channels_per_lane * bytes_of(T));
  IP_UNROLL
  for (int p = 0; p < Pieces; ++p)
    values.piece[p] = load_piece<T>(at + p * (piece_channels * bytes_of(T)));
  return values;
}
// The j-th present vector of the group.
template <DType T, int Pieces>
IP_DEVICE Row<T, Pieces> load_vector(const GroupParams& p, const GroupVectors& vectors, int j,
                                     int lane) {
  const std::int64_t row = vectors.record.first_row + p.offsets[vectors.place(j)];
  return load_row<T, Pieces>(p.vectors + row * (p.head_dim * bytes_of(T)), lane);
}

// Over the lanes of a group, by trees; every lane gets the same bits.
IP_DEVICE float sum_over(int lanes, float value) {
  for (int distance = 1; distance < lanes; distance *= 2)
    value = ip::add(value, ip::shuffle_xor(ip::full_mask, value, distance));
  return value;
}
IP_DEVICE std::uint32_t sum_over(int lanes, std::uint32_t value) {
  for (int distance = 1; distance < lanes; distance *= 2)
    value += ip::shuffle_xor(ip::full_mask, value, distance);
  return value;
}
IP_DEVICE float max_over(int lanes, float value) {
  for (int distance = 1; distance < lanes; distance *= 2)
    value = ip::max_number(value, ip::shuffle_xor(ip::full_mask, value, distance));
  return value;
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
