// What the library and the worker process share: one file of memory, a control block first, then
// buffers between guard pages. Plain data; both sides are of one build, which the magic checks.
//
//   [Control, page-rounded] [guard] [segment 0] [guard] [segment 1] [guard] ...
//
// A segment is whole pages: slack, data, slack. The slack of outputs holds guard bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "indexpool/verify/plugin.h"

namespace indexpool::verify::plugin {

inline constexpr std::uint64_t page_bytes = 4096;
// Wide enough that a stray index lands in a guard and is measured against the buffer it left.
inline constexpr std::uint64_t guard_bytes = 64u * 1024;
inline constexpr std::uint64_t data_alignment = 64;
inline constexpr int memory_descriptor = 3;  // where the worker finds the shared memory
inline constexpr int call_count = 2;
inline constexpr int most_inputs = 8, most_outputs = 6;

enum class Operation : std::uint32_t { none, pool, quantize_query, logits, topk, pipeline };
inline constexpr int operation_count = 6;

enum class Stage : std::uint32_t {
  starting,
  loading,   // dlopen, which runs the plugin's constructors
  checking,  // its two exported functions
  calling,
  lingering,  // the calls returned; are its threads at rest?
  finished
};

enum class LoadFault : std::uint32_t {
  none,
  not_loaded,
  no_symbol,
  wrong_abi,
  no_table,
  not_offered
};

struct Segment {
  std::uint64_t begin = 0, end = 0;   // offsets in the shared memory; multiples of a page
  std::uint64_t data = 0, bytes = 0;  // of the buffer
  std::int64_t elements = 0;
};

// What happened, written by the worker as it goes: what stands here when it dies is how far it got.
struct Progress {
  std::atomic<Stage> stage{Stage::starting};
  std::atomic<std::uint32_t> call{0};  // of call_count, while calling
  LoadFault load = LoadFault::none;
  std::int32_t abi = 0;
  std::uint32_t offered = 0;  // bit of each Operation
  std::int32_t accumulation = 0;
  char name[128] = {};
  char text[1024] = {};  // of dlerror or of an exception
  std::int32_t threw = 0;
  std::int32_t returned[call_count] = {};
  std::int64_t written[call_count][most_outputs] = {};
  std::int32_t threads_left = 0, threads_running = 0, processes_left = 0;
  // The signal that killed it, when a handler could look.
  std::int32_t signal = 0, signal_code = 0;
  std::int32_t access = 0;  // 0 unknown, 1 read, 2 write
  std::uint64_t address = 0, stack_pointer = 0, base = 0;
};

struct Control {
  std::uint64_t magic = 0;
  Operation operation = Operation::none;  // none: load and describe only
  std::int32_t input_count = 0, output_count = 0;
  std::int64_t data_limit_bytes = 0;  // of private memory; 0: none
  std::int64_t cpu_limit_seconds = 0;
  float logit_scale = 0;
  std::int64_t logits_stride = 0;
  indexpool_sizes sizes = {};
  // inputs[0] holds the sequences; the others are those of the operation in the header's order.
  Segment inputs[most_inputs];
  Segment outputs[call_count][most_outputs];
  char path[4096] = {};
  Progress progress;
};

inline constexpr std::uint64_t control_magic = 0x69706c7567000000u + sizeof(Control);

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace indexpool::verify::plugin
