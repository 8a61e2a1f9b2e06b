// Threads a plugin leaves behind: a pool that waits for work is fine, one that still works is not.
#pragma once

namespace indexpool::verify::plugin {

struct Leftovers {
  int threads = 0;  // beside the caller
  int running = 0;  // of them, still on a processor when the wait was over
};

// Returns at once when there are none, and otherwise when all have come to rest, after a quarter of
// a second at the latest. Runtimes that spin before they sleep (OpenMP) need some milliseconds.
Leftovers wait_for_threads();

}  // namespace indexpool::verify::plugin
