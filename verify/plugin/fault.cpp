#include "indexpool/verify/plugin/fault.hpp"

#include <csignal>
#include <limits>

#include <fmt/format.h>

namespace indexpool::verify::plugin {
namespace {

constexpr std::uint64_t stack_reach = 64u * 1024;  // a frame's worth below the stack pointer
constexpr std::uint64_t null_reach = 64u * 1024;   // of an index or a member behind a null pointer

const char* verb_of(std::int32_t access) {
  return access == 2 ? "wrote" : access == 1 ? "read" : "touched";
}

// The buffer nearest to an offset in the shared memory.
struct Nearest {
  const Segment* segment = nullptr;
  std::string name;
  bool input = false;
  int call = 0;
  std::uint64_t distance = std::numeric_limits<std::uint64_t>::max();

  void offer(const Segment& candidate, const std::string& candidate_name, bool is_input,
             int of_call, std::uint64_t offset) {
    if (candidate.end == 0) return;
    const std::uint64_t end = candidate.data + candidate.bytes;
    const std::uint64_t away = offset < candidate.data ? candidate.data - offset
                               : offset < end          ? 0
                                                       : offset - end + 1;
    if (away >= distance) return;
    *this = {&candidate, candidate_name, is_input, of_call, away};
  }
};

Nearest nearest_to(const Request& request, const Control& control, std::uint64_t offset) {
  Nearest nearest;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    nearest.offer(control.inputs[i], request.inputs[i].name, true, 0, offset);
  }
  for (int call = 0; call < call_count; ++call) {
    for (std::size_t i = 0; i < request.outputs.size(); ++i) {
      nearest.offer(control.outputs[call][i], request.outputs[i].name, false, call, offset);
    }
  }
  return nearest;
}

std::string in_a_buffer(const Nearest& nearest, const Progress& progress, std::uint64_t offset) {
  const std::string name = fmt::format("{} `{}` ({})", nearest.input ? "input" : "output",
                                       nearest.name, count_bytes(nearest.segment->bytes));
  const char* verb = verb_of(progress.access);
  if (offset < nearest.segment->data) {
    return fmt::format("{} {} before the start of {}", verb,
                       count_bytes(nearest.segment->data - offset), name);
  }
  const std::uint64_t byte = offset - nearest.segment->data;
  if (byte >= nearest.segment->bytes) {
    return fmt::format("{} {} past the end of {}", verb,
                       count_bytes(byte - nearest.segment->bytes + 1), name);
  }
  if (nearest.input) {
    return fmt::format("{} to byte {} of {}, which is read-only", verb, byte, name);
  }
  return fmt::format("{} to byte {} of {} after the call it belongs to had returned", verb, byte,
                     name);
}

}  // namespace

std::string count_bytes(std::uint64_t count) {
  return count == 1 ? "1 byte" : fmt::format("{} bytes", count);
}

std::string describe_fault(const Request& request, const Control& control,
                           std::uint64_t shared_bytes) {
  const Progress& progress = control.progress;
  if (progress.signal == SIGFPE) return "an integer division by zero or overflow";
  if (progress.signal == SIGILL) return "an instruction this processor does not have";
  if (progress.signal_code <= 0) return "sent by a process, not by a fault";
  if (progress.signal_code == SI_KERNEL) return "used an address that cannot exist";
  const std::uint64_t address = progress.address;
  const char* verb = verb_of(progress.access);
  if (address < null_reach) return fmt::format("{} through a null pointer ({:#x})", verb, address);
  if (address >= progress.base && address < progress.base + shared_bytes) {
    const std::uint64_t offset = address - progress.base;
    const Nearest nearest = nearest_to(request, control, offset);
    if (nearest.distance <= guard_bytes + page_bytes) {
      return in_a_buffer(nearest, progress, offset);
    }
  }
  if (address + stack_reach >= progress.stack_pointer &&
      address < progress.stack_pointer + page_bytes) {
    return "the stack overflowed";
  }
  return fmt::format("{} at {:#x}, which is in none of its buffers", verb, address);
}

}  // namespace indexpool::verify::plugin
