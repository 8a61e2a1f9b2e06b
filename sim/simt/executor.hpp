// The state of the block that runs: who waits for what, and whose turn it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "indexpool/sim/simt/counters.hpp"
#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/fiber.hpp"
#include "indexpool/sim/simt/memory.hpp"
#include "indexpool/sim/simt/sanitize.hpp"
#include "indexpool/sim/simt/session.hpp"
#include "indexpool/sim/simt/shared.hpp"

namespace indexpool::sim::simt {

inline constexpr int max_threads = 1024;  // of a block

struct Executor;
struct Warp;

// An operation that lanes of a warp do together. `complete` runs once, when the last lane of the
// mask has arrived, while all of them wait: it may read and write what their payloads point to.
struct WarpOperation {
  const char* name;
  void (*complete)(Executor& executor, Warp& warp, std::uint32_t mask);
  bool orders_memory;  // as __syncwarp does; shuffles, votes and matrix operations do not
};

struct PendingCopy {
  std::byte* to;
  const std::byte* from;  // null: zeros
};

// Asynchronous copies of one thread, oldest first; `group_ends` are prefixes closed by a commit.
struct CopyQueue {
  std::vector<PendingCopy> copies;
  std::vector<std::size_t> group_ends;
};

struct Thread {
  Executor* executor = nullptr;
  Fiber* fiber = nullptr;
  int index = 0;
  bool started = false;     // in this block
  void* payload = nullptr;  // of the warp operation it waits in
  Where where;              // where it waits
  std::uint32_t mask = 0;   // whom it waits for
  const char* waits_in = nullptr;
  std::int64_t accesses = 0;  // since its turn began
  CopyQueue pending;
  char arrival_tag = 0;           // for the race detector: what this lane did before a sync_warp
  char* departure_tag = nullptr;  // and what all lanes of the mask did
  std::array<char, 2> completed_tags{};
  unsigned completed = 0;
};

// A warp operation that waits for more lanes.
struct OpenOperation {
  std::uint32_t mask, arrived;
  const WarpOperation* operation;
  Where where;
};

// Every lane is in exactly one of the masks.
struct Warp {
  Thread* threads = nullptr;  // its 32
  std::uint32_t ready = 0, in_operation = 0, at_barrier = 0, done = 0;
  std::vector<OpenOperation> open;
};

struct Executor {
  Executor();
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void begin_launch(Session& session, int threads, std::int64_t shared_bytes,
                    const std::function<void()>& kernel);
  void run_block(std::int64_t block);

  Thread& thread() { return threads_[position.thread]; }
  Warp& warp() { return warps[position.thread >> 5]; }

  void set_ready(Warp& warp, std::uint32_t lanes);
  void set_waiting(Warp& warp, std::uint32_t lanes);
  // Runs others until the calling thread is ready and its turn comes.
  void wait_turn(Thread& self);
  // Completes a thread's part of the block; may find that others now wait in vain.
  void leave(Thread& self);
  void release_barrier();
  // Throws ExecutorError with kernel line, block and thread in the text.
  [[noreturn]] void fail(const char* kind, const std::string& text, const Where& where);

  Session* session = nullptr;
  const std::function<void()>* kernel = nullptr;
  Memory::Impl* memory = nullptr;
  SharedMemory shared;
  Counters counters;
  bool counting = false;

  int thread_count = 0, warp_count = 0;
  std::array<Warp, 32> warps;
  int waiting_at_barrier = 0, done = 0;
  Where barrier_where;
  std::array<char, 2>
      barrier_tags{};  // alternate, so that a fast thread's next arrival stays apart
  unsigned barriers = 0;

 private:
  static void run_fiber(void* thread);
  int next_turn();  // index of the next thread to run; one must be ready
  void switch_to(Thread& self, int next);
  int run_kernel(Thread& self);  // returns whose turn is next, -1 for the main stack's
  void add_thread();
  void cancel_all();
  [[noreturn]] void report_stuck();

  std::unique_ptr<Thread[]> threads_;  // max_threads
  int threads_made_ = 0;               // as many as any launch so far had
  FiberPool fibers_;
  Fiber main_;
  std::exception_ptr failure_;
  bool cancelling_ = false, stopping_ = false;
  char start_tag_ = 0, end_tag_ = 0;
  std::int64_t turns_ = 0;
  std::uint32_t ready_warps_ = 0;
  int current_warp_ = 0, cursor_ = 0;
  std::uint64_t random_ = 0;
};

// The executor of the launch that runs on this OS thread; InternalError outside a kernel.
Executor& running_executor();

void arrive(Executor& executor, const WarpOperation& operation, std::uint32_t mask, void* payload,
            const Where& where);

}  // namespace indexpool::sim::simt
