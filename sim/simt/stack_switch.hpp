// Leaving one stack for another: 20 lines of assembly on x86-64 (35 million switches a second),
// ucontext elsewhere, which also saves the signal mask (5 million).
#pragma once

#include <cstddef>

namespace indexpool::sim::simt {

// The state of a stack that, once switched to, runs `entry(argument)`, which must never return.
// Returns where it is suspended.
void* prepare_stack(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument);

// Suspends the running stack, notes where in `save`, and continues the one suspended at `load`.
void switch_stack(void** save, void* load);

}  // namespace indexpool::sim::simt
