#include "indexpool/sim/simt/fiber.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "indexpool/model/error.hpp"
#include "indexpool/sim/simt/sanitize.hpp"
#include "indexpool/sim/simt/stack_switch.hpp"

namespace indexpool::sim::simt {
namespace {

// Sanitizers widen every frame; pages that a kernel does not touch stay unmapped.
constexpr std::size_t stack_bytes = sanitized ? 256 * 1024 : 64 * 1024;

// Who switched last, so that the fiber that continues can tell the sanitizer where it came from.
thread_local Fiber* switched_from = nullptr;

[[gnu::noinline, gnu::no_sanitize("thread")]] void continued([[maybe_unused]] Fiber& self) {
#if defined(INDEXPOOL_ASAN)
  __sanitizer_finish_switch_fiber(self.fake_stack, &switched_from->stack,
                                  &switched_from->stack_bytes);
#endif
}

}  // namespace

[[gnu::noinline, gnu::no_sanitize("thread")]] void switch_fiber(Fiber& from, Fiber& to) {
  switched_from = &from;
#if defined(INDEXPOOL_ASAN)
  __sanitizer_start_switch_fiber(from.finished ? nullptr : &from.fake_stack, to.stack,
                                 to.stack_bytes);
#endif
#if defined(INDEXPOOL_TSAN)
  __tsan_switch_to_fiber(to.race_context, __tsan_switch_to_fiber_no_sync);
#endif
  switch_stack(&from.stack_pointer, to.stack_pointer);
  continued(from);
}

[[gnu::no_sanitize("thread")]] void fiber_started() {
  Fiber fresh;
  continued(fresh);
}

Fiber this_thread_as_fiber() {
  Fiber fiber;
#if defined(INDEXPOOL_TSAN)
  fiber.race_context = __tsan_get_current_fiber();
#endif
  return fiber;
}

std::byte* FiberPool::new_stack() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = page + stack_bytes;
  void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    throw EnvironmentError("no memory for the stack of a CUDA thread: " +
                           std::string(std::strerror(errno)));
  }
  mappings_.push_back({static_cast<std::byte*>(begin), bytes});
  mprotect(begin, page, PROT_NONE);  // an overflowing stack faults instead of corrupting the next
  allow_access(static_cast<std::byte*>(begin) + page, stack_bytes);
  return static_cast<std::byte*>(begin) + page;
}

Fiber& FiberPool::add(void (*entry)(void*), void* argument) {
  std::byte* stack = new_stack();
  // Equal page offsets would put the hot lines of all stacks into the same cache sets; steps of
  // nine lines spread them.
  const std::size_t shift = fibers_.size() * 9 % 64 * 64;
  Fiber& fiber = fibers_.emplace_back();
  fiber.stack_pointer = prepare_stack(stack, stack_bytes - shift, entry, argument);
  fiber.stack = stack;
  fiber.stack_bytes = stack_bytes;
#if defined(INDEXPOOL_TSAN)
  fiber.race_context = __tsan_create_fiber(0);
#endif
  return fiber;
}

FiberPool::~FiberPool() {
#if defined(INDEXPOOL_TSAN)
  for (Fiber& fiber : fibers_) __tsan_destroy_fiber(fiber.race_context);
#endif
  for (const Mapping& mapping : mappings_) {
    allow_access(mapping.begin, mapping.bytes);
    munmap(mapping.begin, mapping.bytes);
  }
}

}  // namespace indexpool::sim::simt
