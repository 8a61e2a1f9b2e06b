#include "indexpool/sim/simt/fiber.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "indexpool/model/error.hpp"
#include "indexpool/sim/simt/sanitize.hpp"

#if !defined(__x86_64__)
#error "the executor switches stacks in x86-64 assembly; port indexpool_simt_switch to this machine"
#endif

extern "C" {
void indexpool_simt_switch(void** save_stack_pointer, void* load_stack_pointer);
void indexpool_simt_start();
}

// Callee-saved registers of the System V ABI go to the old stack and come from the new one. A new
// fiber begins at indexpool_simt_start with its entry in r12 and the argument in r13; the undefined
// return address ends every backtrace there.
asm(R"(
.text
.globl indexpool_simt_switch
.hidden indexpool_simt_switch
.type indexpool_simt_switch,@function
indexpool_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size indexpool_simt_switch,.-indexpool_simt_switch
.globl indexpool_simt_start
.hidden indexpool_simt_start
.type indexpool_simt_start,@function
indexpool_simt_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %r13, %rdi
  callq *%r12
  ud2
  .cfi_endproc
.size indexpool_simt_start,.-indexpool_simt_start
)");

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
  indexpool_simt_switch(&from.stack_pointer, to.stack_pointer);
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
  auto* top = reinterpret_cast<void**>(stack + stack_bytes - shift - 64);
  *--top = nullptr;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&indexpool_simt_start);
  *--top = nullptr;                         // rbp
  *--top = nullptr;                         // rbx
  *--top = reinterpret_cast<void*>(entry);  // r12
  *--top = argument;                        // r13
  *--top = nullptr;                         // r14
  *--top = nullptr;                         // r15
  Fiber& fiber = fibers_.emplace_back();
  fiber.stack_pointer = top;
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
