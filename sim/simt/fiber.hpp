// Stacks that take turns on one OS thread.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace indexpool::sim::simt {

struct Fiber {
  void* stack_pointer = nullptr;  // where it was suspended
  const void* stack = nullptr;    // lowest address; of the OS thread's own stack known lazily
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;    // address sanitizer's
  void* race_context = nullptr;  // thread sanitizer's
  bool finished = false;         // never resumed again
};

// Suspends `from`, the fiber that runs, and continues `to` where it was suspended.
void switch_fiber(Fiber& from, Fiber& to);

// To be called first thing by the entry function of a new fiber.
void fiber_started();

// The OS thread's own stack as a fiber.
Fiber this_thread_as_fiber();

// Fibers kept from launch to launch: mapping and touching a stack costs more than running a thread.
class FiberPool {
 public:
  FiberPool() = default;
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // Adds a fiber that runs `entry(argument)`, which must never return. Throws EnvironmentError.
  Fiber& add(void (*entry)(void*), void* argument);

 private:
  struct Mapping {
    std::byte* begin;
    std::size_t bytes;
  };
  std::byte* new_stack();
  std::deque<Fiber> fibers_;
  std::vector<Mapping> mappings_;
};

}  // namespace indexpool::sim::simt
