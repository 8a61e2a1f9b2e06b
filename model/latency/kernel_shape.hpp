// What a measured launch did, as far as its time depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "indexpool/model/units.hpp"

namespace indexpool {

// What of a launch is inside a measured time.
enum class TimedFrom {
  stream,  // launches in a stream, one after the other
  graph,   // launches of a CUDA graph
  kernel,  // a profiler's kernel time, or passes between two grid barriers: no launch
  steady   // a rate over many passes: nothing but the bytes
};
std::string_view to_string(TimedFrom from);

// Bytes that pass once: copies, reductions over rows, element-wise operations.
struct StreamShape {
  Bytes read, written;
  std::int64_t blocks = 0, threads_per_block = 0;  // 0: a full device
  std::int64_t blocks_per_sm = 0;
  bool repeated = false;  // the same data again and again: what fits the L2 stays there
  TimedFrom timed_from = TimedFrom::stream;
};
// Tables made from a framework time the host below about this many bytes; and wherever a time comes
// from, what a device's caches may hold is missed by other amounts than what they can't.
inline constexpr std::int64_t large_stream_bytes = 80'000'000;
inline bool large(const StreamShape& shape) {
  return (shape.read + shape.written).value > large_stream_bytes;
}
// out[m][n] = sum over k of a[m][k] b[k][n].
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t element_bytes = 2;
};
// Rows of queries against the cached entries of their sequences; row i of a sequence sees the
// entries of its first context + i + 1 tokens, `tokens_per_entry` tokens each.
struct CacheShape {
  std::int64_t sequences = 0, rows_per_sequence = 0, context = 0;
  std::int64_t tokens_per_entry = 1;
  std::int64_t heads = 0, key_heads = 1, head_dim = 0;
  std::int64_t entry_bytes = 0;  // of one cached entry of one key head
  std::int64_t topk = 0;         // entries to select; 0: none
};
// One load after the other, each address the value of the last.
struct ChaseShape {
  Bytes footprint;
};
using KernelShape = std::variant<StreamShape, GemmShape, CacheShape, ChaseShape>;

// "m=64,n=4096,k=512": what a row is recognised by; equal shapes have equal texts.
std::string shape_text(const KernelShape& shape);

}  // namespace indexpool
