#include "indexpool/sim/simt/stack_switch.hpp"

#if defined(__x86_64__) && !defined(INDEXPOOL_PORTABLE_SWITCH)

extern "C" {
void indexpool_simt_switch(void** save, void* load);
void indexpool_simt_start();
}

// Callee-saved registers of the System V ABI go to the old stack and come from the new one. A new
// stack begins at indexpool_simt_start with its entry in r12 and the argument in r13; the undefined
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

void* prepare_stack(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument) {
  auto* top = reinterpret_cast<void**>(stack + bytes / 16 * 16);
  *--top = nullptr;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&indexpool_simt_start);
  *--top = nullptr;                         // rbp
  *--top = nullptr;                         // rbx
  *--top = reinterpret_cast<void*>(entry);  // r12
  *--top = argument;                        // r13
  *--top = nullptr;                         // r14
  *--top = nullptr;                         // r15
  return top;
}

[[gnu::no_sanitize("thread")]] void switch_stack(void** save, void* load) {
  indexpool_simt_switch(save, load);
}

}  // namespace indexpool::sim::simt

#else

#include <cstdint>
#include <new>
#include <ucontext.h>

namespace indexpool::sim::simt {
namespace {

struct Start {
  ucontext_t context;
  void (*entry)(void*);
  void* argument;
};

// makecontext passes int arguments only, so a pointer travels in two halves.
void start(unsigned high, unsigned low) {
  const auto* self =
      reinterpret_cast<Start*>(static_cast<std::uintptr_t>(high) << 32 | std::uintptr_t{low});
  self->entry(self->argument);
}

}  // namespace

void* prepare_stack(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument) {
  const std::size_t below = (bytes - sizeof(Start)) / 64 * 64;
  auto* self = new (stack + below) Start{{}, entry, argument};
  getcontext(&self->context);
  self->context.uc_stack.ss_sp = stack;
  self->context.uc_stack.ss_size = below;
  self->context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(self);
  makecontext(&self->context, reinterpret_cast<void (*)()>(&start), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  return &self->context;
}

[[gnu::noinline, gnu::no_sanitize("thread")]] void switch_stack(void** save, void* load) {
  ucontext_t here;  // lives on the stack that is suspended
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}

}  // namespace indexpool::sim::simt

#endif
