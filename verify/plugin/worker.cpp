// The process a plugin runs in: maps the shared memory it was given, loads the plugin, calls one
// operation twice, and leaves word of every step in the control block. Anything may happen to it.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "indexpool/verify/plugin/protocol.hpp"
#include "indexpool/verify/plugin/worker_call.hpp"
#include "indexpool/verify/plugin/worker_faults.hpp"
#include "indexpool/verify/plugin/worker_threads.hpp"

namespace indexpool::verify::plugin {
namespace {

// With a plugin in the process no destructor of its can be trusted to run.
[[noreturn]] void leave() {
  std::fflush(nullptr);
  _exit(0);
}

void copy_text(char* to, std::size_t size, const char* from) {
  std::snprintf(to, size, "%s", from == nullptr ? "" : from);
}

Control* map_control() {
  struct stat status {};
  if (fstat(memory_descriptor, &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(Control))) {
    return nullptr;
  }
  void* memory = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_NONE, MAP_SHARED,
                      memory_descriptor, 0);
  close(memory_descriptor);  // nothing else may write the inputs
  if (memory == MAP_FAILED) return nullptr;
  auto* control = static_cast<Control*>(memory);
  unlock(control);
  return control->magic == control_magic ? control : nullptr;
}

void* at(Control* control, const Segment& segment) {
  return reinterpret_cast<std::byte*>(control) + segment.data;
}

void protect(Control* control, const Segment& segment, int protection) {
  if (segment.end == segment.begin) return;
  mprotect(reinterpret_cast<std::byte*>(control) + segment.begin, segment.end - segment.begin,
           protection);
}

void set_limit(int resource, std::int64_t value) {
  if (value <= 0) return;
  const auto bound = static_cast<rlim_t>(value);
  const rlimit limit{bound, bound};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

void restrict_process(const Control& control) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would judge what it does without its parent
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  set_limit(RLIMIT_CPU, control.cpu_limit_seconds);
// The sanitizers' shadow counts as private memory; the parent still watches what is resident.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  set_limit(RLIMIT_DATA, control.data_limit_bytes);
#endif
}

// The exception in flight, as "std::runtime_error: text".
std::string name_exception() {
  std::string text = "an object that is no exception";
  if (const std::type_info* type = abi::__cxa_current_exception_type()) {
    int status = 0;
    char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
    text = name != nullptr ? name : type->name();
    std::free(name);
  }
  try {
    throw;
  } catch (const std::exception& error) {
    text += std::string(": ") + error.what();
  } catch (...) {
  }
  return text;
}

// Runs code of the plugin with the control block locked. Leaves the process when it threw, and
// silently where the plugin forked and a second process comes back.
template <class Body>
auto guarded(Control* control, const Body& body) {
  const pid_t own = getpid();
  lock(control);
  try {
    const auto result = body();
    if (getpid() != own) _exit(0);
    unlock(control);
    return result;
  } catch (...) {
    if (getpid() != own) _exit(0);
    const std::string text = name_exception();
    unlock(control);
    copy_text(control->progress.text, sizeof(control->progress.text), text.c_str());
    control->progress.threw = 1;
    leave();
  }
}

[[noreturn]] void fail_to_load(Control* control, LoadFault fault, const char* text) {
  control->progress.load = fault;
  copy_text(control->progress.text, sizeof(control->progress.text), text);
  leave();
}

using AbiFunction = int (*)();
using TableFunction = const indexpool_plugin* (*)();

template <class Function>
Function find(Control* control, void* handle, const char* name) {
  auto* const found = reinterpret_cast<Function>(dlsym(handle, name));
  if (found == nullptr) fail_to_load(control, LoadFault::no_symbol, name);
  return found;
}

indexpool_plugin load(Control* control) {
  Progress& progress = control->progress;
  progress.stage = Stage::loading;
  void* handle = guarded(control, [&] { return dlopen(control->path, RTLD_NOW | RTLD_LOCAL); });
  if (handle == nullptr) fail_to_load(control, LoadFault::not_loaded, dlerror());
  progress.stage = Stage::checking;
  const auto abi = find<AbiFunction>(control, handle, "indexpool_plugin_abi");
  const auto table_of = find<TableFunction>(control, handle, "indexpool_plugin_table");
  progress.abi = guarded(control, [&] { return abi(); });
  if (progress.abi != INDEXPOOL_PLUGIN_ABI) fail_to_load(control, LoadFault::wrong_abi, "");
  const indexpool_plugin* table = guarded(control, [&] { return table_of(); });
  if (table == nullptr) fail_to_load(control, LoadFault::no_table, "");
  // A table of garbage faults here, inside `guarded` no more but named by the stage.
  const indexpool_plugin copy = *table;
  copy_text(progress.name, sizeof(progress.name), copy.name);
  progress.accumulation = copy.accumulation;
  progress.offered = offered_operations(copy);
  return copy;
}

void make_calls(Control* control, const indexpool_plugin& plugin) {
  Progress& progress = control->progress;
  for (int call = 0; call < call_count; ++call) {
    Arguments arguments;
    fill_arguments(
        *control, call, [&](const Segment& segment) { return at(control, segment); }, arguments);
    progress.call = static_cast<std::uint32_t>(call);
    progress.stage = Stage::calling;
    const int returned =
        guarded(control, [&] { return call_operation(plugin, control->operation, arguments); });
    progress.returned[call] = returned;
    std::memcpy(progress.written[call], arguments.written, sizeof(arguments.written));
    // A thread that goes on writing is caught in the act.
    for (int i = 0; i < control->output_count; ++i) {
      protect(control, control->outputs[call][i], PROT_READ);
    }
    if (returned != INDEXPOOL_OK) return;
  }
}

int work() {
  Control* control = map_control();
  if (control == nullptr) {
    std::fputs(
        "indexpool-plugin-worker: started by indexpool check --plugin, not by hand; or it "
        "belongs to another build than its caller\n",
        stderr);
    return 2;
  }
  restrict_process(*control);
  control->progress.base = reinterpret_cast<std::uint64_t>(control);
  watch_faults(control);
  for (int i = 0; i < control->input_count; ++i) protect(control, control->inputs[i], PROT_READ);
  for (const auto& outputs : control->outputs) {
    for (int i = 0; i < control->output_count; ++i) {
      protect(control, outputs[i], PROT_READ | PROT_WRITE);
    }
  }
  const indexpool_plugin plugin = load(control);
  if (control->operation != Operation::none) {
    if ((control->progress.offered >> static_cast<int>(control->operation) & 1u) == 0) {
      fail_to_load(control, LoadFault::not_offered, "");
    }
    make_calls(control, plugin);
    control->progress.stage = Stage::lingering;
    const Leftovers left = wait_for_threads();
    control->progress.threads_left = left.threads;
    control->progress.threads_running = left.running;
    control->progress.processes_left = waitpid(-1, nullptr, WNOHANG) == 0 ? 1 : 0;
  }
  control->progress.stage = Stage::finished;
  leave();
}

}  // namespace
}  // namespace indexpool::verify::plugin

int main() { return indexpool::verify::plugin::work(); }
