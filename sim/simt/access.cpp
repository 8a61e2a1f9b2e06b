// Checks and counts of single accesses.
#include <cstring>

#include <fmt/format.h>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/executor.hpp"

namespace indexpool::sim::simt {
namespace {

const char* verb(bool store) { return store ? "store" : "load"; }

void check_alignment(Executor& executor, std::uintptr_t address, int bytes, bool store,
                     const char* space, const Where& where) {
  if ((address & static_cast<std::uintptr_t>(bytes - 1)) == 0) return;
  const std::string place =
      space[0] == 'g'
          ? executor.memory->place_of(address)
          : fmt::format("offset {}",
                        static_cast<std::intptr_t>(
                            address - reinterpret_cast<std::uintptr_t>(position.shared)));
  executor.fail("misaligned",
                fmt::format("{} {} of {} bytes at {}; expected an address that is a multiple of {}",
                            space, verb(store), bytes, place, bytes),
                where);
}

// A thread that spins on memory never gives others a turn.
void check_progress(Executor& executor, const Where& where) {
  if (++executor.thread().accesses <= executor.session->options.max_turns) return;
  executor.fail("hung",
                fmt::format("the thread made {} accesses without a barrier or warp operation",
                            executor.session->options.max_turns),
                where);
}

void count(Executor& executor, AccessKind kind, std::uintptr_t address, int bytes,
           const Where& where) {
  if (!executor.counting) return;
  executor.counters.access(position.thread >> 5, position.thread & 31, kind, address, bytes, where);
}

}  // namespace

void enter_global(const void* address, int bytes, bool store, Where where) {
  const QuietScope quiet;
  Executor& executor = running_executor();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!executor.memory->contains(at, bytes, where)) {
    executor.fail("out_of_bounds",
                  fmt::format("global {} of {} bytes at {}", verb(store), bytes,
                              executor.memory->place_of(at)),
                  where);
  }
  check_alignment(executor, at, bytes, store, "global", where);
  check_progress(executor, where);
  count(executor, store ? AccessKind::global_store : AccessKind::global_load, at, bytes, where);
}

void enter_shared(const void* address, int bytes, bool store, Where where) {
  const QuietScope quiet;
  Executor& executor = running_executor();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!executor.shared.contains(at, bytes)) {
    const auto offset =
        static_cast<std::intptr_t>(at - reinterpret_cast<std::uintptr_t>(position.shared));
    executor.fail("out_of_bounds",
                  fmt::format("shared {} of {} bytes at offset {} of the block's {} bytes",
                              verb(store), bytes, offset, executor.shared.bytes()),
                  where);
  }
  check_alignment(executor, at, bytes, store, "shared", where);
  check_progress(executor, where);
  count(executor, store ? AccessKind::shared_store : AccessKind::shared_load, at, bytes, where);
}

void load_global_bytes(void* to, const void* from, int bytes, Where where) {
  enter_global(from, bytes, false, where);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void store_global_bytes(void* to, const void* from, int bytes, Where where) {
  enter_global(to, bytes, true, where);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::int32_t atomic_add_shared(std::int32_t* to, std::int32_t value, Where where) {
  enter_shared(to, 4, true, where);
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

}  // namespace indexpool::sim::simt
