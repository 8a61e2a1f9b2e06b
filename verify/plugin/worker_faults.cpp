#include "indexpool/verify/plugin/worker_faults.hpp"

#include <csignal>
#include <cstddef>
#include <sys/mman.h>
#include <ucontext.h>

namespace indexpool::verify::plugin {
namespace {

Control* noted = nullptr;  // a signal handler has no other way to find it

constexpr int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Whether a page fault was a write: bit 1 of its error code, where the machine gives one.
std::int32_t access_of(int signal, const ucontext_t& context) {
#if defined(__x86_64__)
  if (signal != SIGSEGV && signal != SIGBUS) return 0;
  return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0 ? 2 : 1;
#else
  (void)signal;
  (void)context;
  return 0;
#endif
}

std::uint64_t stack_pointer_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.sp;
#else
  (void)context;
  return 0;
#endif
}

// The handler was reset on entry: returning repeats the instruction, which kills the process with
// the signal it earned. A signal that somebody sent has no instruction to repeat.
void note_fault(int signal, siginfo_t* what, void* context) {
  unlock(noted);
  Progress& progress = noted->progress;
  const auto& registers = *static_cast<const ucontext_t*>(context);
  progress.signal_code = what->si_code;
  progress.address = reinterpret_cast<std::uint64_t>(what->si_addr);
  progress.access = access_of(signal, registers);
  progress.stack_pointer = stack_pointer_of(registers);
  progress.signal = signal;
  if (what->si_code <= 0) raise(signal);
}

}  // namespace

void watch_faults(Control* control) {
  noted = control;
  alignas(16) static std::byte handler_stack[64 * 1024];
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : deadly) sigaction(signal, &action, nullptr);
}

void lock(Control* control) { mprotect(control, round_up(sizeof(Control), page_bytes), PROT_READ); }

void unlock(Control* control) {
  mprotect(control, round_up(sizeof(Control), page_bytes), PROT_READ | PROT_WRITE);
}

}  // namespace indexpool::verify::plugin
