// Runs the worker process within limits. The caller comes back within the time limit and a few
// seconds, whatever the worker does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "indexpool/verify/plugin/plugin.hpp"

namespace indexpool::verify::plugin {

// What the worker sets on itself, should nobody be there to watch it: memory it may reserve, and
// time of all processors.
std::int64_t data_limit(const PluginLimits& limits);
std::int64_t cpu_limit(const PluginLimits& limits);

struct Ending {
  enum class How { exited, signalled, out_of_time, out_of_memory, printed_too_much };
  How how = How::exited;
  int code = 0;              // exit status, or the signal
  bool resists = false;      // still there seconds after SIGKILL
  std::string last_lines;    // of what it printed, printable characters only
  std::int64_t printed = 0;  // bytes
};

// A process of its own by posix_spawn, not a fork of the caller: a fork of a program with threads
// may not load a library, CUDA does not survive a fork, and the caller's heap would count against
// the memory limit. The descriptor `memory` becomes the worker's shared memory. Throws
// EnvironmentError when the worker cannot be started.
Ending run_worker(const std::filesystem::path& worker, int memory, const PluginLimits& limits);

// The worker of this build: beside the program, installed, or in the build folder. Throws
// EnvironmentError naming the places.
std::filesystem::path find_worker();

}  // namespace indexpool::verify::plugin
