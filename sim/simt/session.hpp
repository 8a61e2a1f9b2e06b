// The CPU executor of kernel source: one fiber per CUDA thread, one block at a time per OS thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "indexpool/model/source_line.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::sim::simt {

// The order in which the threads of a block get their turn between two synchronisations. A correct
// kernel gives the same bytes in every order.
enum class LaneOrder { forward, reverse, random };

// Which generation's accumulation mma.sync follows (mma.hpp).
enum class MatrixModel { sm80, sm90 };

struct Options {
  LaneOrder order = LaneOrder::forward;
  std::uint64_t seed = 1;            // of the random order
  bool count = true;                 // fill Session::counted
  std::vector<std::int64_t> blocks;  // which blocks run; empty: all
  MatrixModel matrix = MatrixModel::sm80;
  std::int64_t max_turns = 1 << 26;  // a block that needs more is reported as hung
};

// What a kernel did that no kernel may do: divergent barrier, bad mask, deadlock, access outside a
// buffer, misaligned access. `what()` names kernel line, block, thread and buffer.
struct ExecutorError : std::runtime_error {
  ExecutorError(std::string kind_, const std::string& text, SourceLine where_)
      : std::runtime_error(text), kind(std::move(kind_)), where(where_) {}
  // "divergent_barrier", "divergent_warp", "bad_mask", "deadlock", "hung", "out_of_bounds",
  // "misaligned"
  std::string kind;
  SourceLine where;
};

// Global memory: named buffers with guards on both ends. Large ones are mapped sparsely, so that
// only touched pages become resident.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // 256-byte aligned. A sparse buffer reads as zeros until written; others are filled with
  // `poison`.
  std::byte* allocate(std::string name, std::int64_t bytes, std::byte poison, bool sparse = false);
  void release(std::byte* buffer);
  // Empty when all guards are intact, else which buffer was written outside, and where.
  std::string check_guards() const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct Session {
  Memory& memory;
  Options options;
  Traffic counted;  // summed over launches; counts of the blocks that ran
};

// Runs `kernel` once per thread of blocks [0, blocks), each with `threads` threads (a multiple of
// 32, at most 1024) and `shared_bytes` of dynamic shared memory, poisoned per block.
// Throws ExecutorError.
void launch(Session& session, std::int64_t blocks, int threads, std::int64_t shared_bytes,
            const std::function<void()>& kernel);

}  // namespace indexpool::sim::simt
