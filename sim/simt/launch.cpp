#include <limits>
#include <memory>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/sim/simt/executor.hpp"

namespace indexpool::sim::simt {
namespace {

// The executor with its stacks is kept between launches of an OS thread, and carries nothing else
// from one to the next.
thread_local std::unique_ptr<Executor> executor;
thread_local bool running = false;

struct Running {
  Running() { running = true; }
  ~Running() { running = false; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

constexpr std::int64_t max_shared_bytes = 227 * 1024;  // compute capability 9.0, opt-in
constexpr std::int64_t max_blocks = std::numeric_limits<std::int32_t>::max();  // gridDim.x

void check(bool condition, const std::string& text) {
  if (!condition) throw InternalError("launch: " + text);
}

void check_shape(const Options& options, std::int64_t blocks, int threads,
                 std::int64_t shared_bytes) {
  check(threads > 0 && threads % 32 == 0 && threads <= max_threads,
        fmt::format("{} threads per block; expected a multiple of 32 up to {}", threads,
                    max_threads));
  check(blocks >= 0 && blocks <= max_blocks,
        fmt::format("{} blocks; expected 0 to {}", blocks, max_blocks));
  check(shared_bytes >= 0 && shared_bytes <= max_shared_bytes,
        fmt::format("{} bytes of shared memory; expected 0 to {}", shared_bytes, max_shared_bytes));
  for (const std::int64_t block : options.blocks) {
    check(block >= 0 && block < blocks,
          fmt::format("Options::blocks names block {} of a grid of {}", block, blocks));
  }
}

}  // namespace

Executor& running_executor() {
  require(running, "a device function was called outside a kernel");
  return *executor;
}

void launch(Session& session, std::int64_t blocks, int threads, std::int64_t shared_bytes,
            const std::function<void()>& kernel) {
  check(!running, "a kernel cannot launch another");
  check_shape(session.options, blocks, threads, shared_bytes);
  if (!executor) executor = std::make_unique<Executor>();
  const Running scope;
  executor->begin_launch(session, threads, shared_bytes, kernel);
  position.grid_blocks = blocks;
  if (session.options.blocks.empty()) {
    for (std::int64_t block = 0; block < blocks; ++block) executor->run_block(block);
  } else {
    for (const std::int64_t block : session.options.blocks) executor->run_block(block);
  }
  if (session.options.count) session.counted += executor->counters.traffic;
}

}  // namespace indexpool::sim::simt
