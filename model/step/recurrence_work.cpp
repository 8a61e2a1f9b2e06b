// The delta rule over recurrent states.
#include <algorithm>

#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

constexpr std::int64_t chunk = 64;  // tokens (flash-linear-attention, chunk kernels)
// Passes over a row's width in bf16: gates (f32) scanned; keys and gates for products of keys;
// keys and values for the two auxiliary matrices; those and keys for the states; queries, keys,
// values and gates for the outputs.
constexpr double row_reads = 15, row_writes = 7;
constexpr std::int64_t chunked_launches = 6;
// Of a chunk: its loads, the product with the state, the state's update.
constexpr double steps_per_chunk = 3;
// Decay (1), what the state holds for the key (2), its correction (2), what the query reads (2).
constexpr double flop_per_state_element = 7;
constexpr std::int64_t columns_per_block = 32;  // of a state, in the decode kernel

Work token_work(const Recurrence& r, const Size& size) {
  const double rows = real(size.rows());
  const double states = real(size.sequences) * real(r.state_bytes);
  Work work;
  work.unique_read = whole_bytes(
      states + rows * real(r.row_width) * bf16_bytes + real(r.parameters.value), "bytes of states");
  // A state for each drafted token: what is accepted is not known yet.
  work.unique_write = whole_bytes(
      states * real(size.rows_per_sequence) + rows * real(r.heads * r.value_dim) * bf16_bytes,
      "bytes of states");
  work.f32_flop = Flop(flop_per_state_element * rows * real(r.heads * r.key_dim * r.value_dim));
  work.blocks = size.sequences * r.heads * divided_up(r.value_dim, columns_per_block);
  work.threads_per_block = 32;
  work.blocks_per_sm = 16;
  work.in_flight_per_block = Bytes(r.key_dim * columns_per_block * f32_bytes);
  work.chain = start_chain(1);
  return work;
}

Work chunked_work(const Recurrence& r, const Size& size) {
  const double rows = real(size.rows()), heads = real(r.heads);
  const double chunks = real(size.sequences) * real(divided_up(size.rows_per_sequence, chunk));
  const double width = heads * real(std::max(r.key_dim, r.value_dim)) * bf16_bytes;
  const double kept = chunks * heads * real(r.key_dim * r.value_dim) * bf16_bytes;
  const double squares = rows * heads * real(chunk) * f32_bytes;  // products of a chunk's keys
  const double states = real(size.sequences) * real(r.state_bytes);
  Work work;
  work.unique_read =
      whole_bytes(row_reads * rows * width + kept + 2 * squares + states + real(r.parameters.value),
                  "bytes of chunks");
  work.unique_write =
      whole_bytes(row_writes * rows * width + kept + 2 * squares + states, "bytes of chunks");
  work.matrix_dtype = "bf16";
  const double key = real(r.key_dim), value = real(r.value_dim);
  work.matrix_flop =
      Flop(2 * rows * heads * (real(chunk) * (3 * key + 2 * value) + 3 * key * value));
  work.launches = chunked_launches;
  work.chain = start_chain(chunked_launches);
  work.chain.first_loads += steps_per_chunk * real(divided_up(size.rows_per_sequence, chunk));
  return work;
}

}  // namespace

Work work_of(const Recurrence& r, const Size& size) {
  Work work = size.rows_per_sequence < chunk ? token_work(r, size) : chunked_work(r, size);
  work.traffic.global_load = work.unique_read;
  work.traffic.global_store = work.unique_write;
  return work;
}

}  // namespace indexpool::step
