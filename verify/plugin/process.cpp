#include "indexpool/verify/plugin/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/plugin/last_lines.hpp"
#include "indexpool/verify/plugin/protocol.hpp"

namespace indexpool::verify::plugin {
namespace {

using Clock = std::chrono::steady_clock;

// A file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  void reset() {
    if (value_ >= 0) close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

pid_t spawn(const std::filesystem::path& worker, int memory, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, memory, memory_descriptor);
  posix_spawn_file_actions_addclosefrom_np(&actions, memory_descriptor + 1);
  // A group of its own, so that what it starts dies with it; no signal handling inherited.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  std::string program = worker.string();
  char* arguments[] = {program.data(), nullptr};
  pid_t process = -1;
  const int error =
      posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw EnvironmentError(fmt::format("could not start {}: {}", program, std::strerror(error)));
  }
  return process;
}

// Resident private bytes: what is resident, less what is shared with files and with us.
std::int64_t private_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return file ? (resident - shared) * static_cast<std::int64_t>(page_bytes) : 0;
}

bool has_ended(pid_t process) {
  siginfo_t what{};
  // Left as a zombie, so that its number names nothing else until it is reaped.
  const int found = waitid(P_PID, static_cast<id_t>(process), &what, WEXITED | WNOHANG | WNOWAIT);
  return found != 0 || what.si_pid == process;
}

struct Watched {
  pid_t process;
  Descriptor& output;
  const PluginLimits& limits;
  LastLines lines;

  // Reads what there is. False when nobody can write any more.
  bool drain() {
    std::array<char, 65536> block{};
    for (;;) {
      const ssize_t count = read(output.get(), block.data(), block.size());
      if (count == 0) return false;
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      lines.add({block.data(), static_cast<std::size_t>(count)});
      if (lines.bytes() > limits.printed_bytes) return true;
    }
  }
};

// Until the process ends by itself or goes over a limit.
Ending::How watch(Watched& watched) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(watched.limits.seconds));
  const Descriptor ended(static_cast<int>(syscall(SYS_pidfd_open, watched.process, 0)));
  const int pause_ms = ended.get() >= 0 ? 10 : 2;  // without a pidfd, look more often
  for (;;) {
    pollfd events[] = {{watched.output.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
    poll(events, 2, pause_ms);
    if (watched.output.get() >= 0 && events[0].revents != 0 && !watched.drain()) {
      watched.output.reset();
    }
    if (watched.lines.bytes() > watched.limits.printed_bytes) return Ending::How::printed_too_much;
    if (has_ended(watched.process)) return Ending::How::exited;
    if (Clock::now() >= end) return Ending::How::out_of_time;
    if (private_bytes(watched.process) > watched.limits.memory_bytes) {
      return Ending::How::out_of_memory;
    }
  }
}

// The status of the process, reaped. False when it is still there after seconds (a driver call that
// cannot be interrupted): it is left behind, but we go on.
bool reap(pid_t process, int& status) {
  kill(-process, SIGKILL);
  kill(process, SIGKILL);
  constexpr int looks = 500;
  for (int i = 0; i < looks; ++i) {
    const pid_t found = waitpid(process, &status, WNOHANG);
    if (found != 0) return true;
    poll(nullptr, 0, 10);
  }
  return false;
}

}  // namespace

std::int64_t data_limit(const PluginLimits& limits) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  return 2 * std::min(limits.memory_bytes, most);
}

std::int64_t cpu_limit(const PluginLimits& limits) {
  const long processors = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  return static_cast<std::int64_t>(std::ceil(limits.seconds)) * processors + 1;
}

Ending run_worker(const std::filesystem::path& worker, int memory, const PluginLimits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError("could not make a pipe");
  Descriptor output(ends[0]), input(ends[1]);
  fcntl(output.get(), F_SETFL, O_NONBLOCK);
  const pid_t process = spawn(worker, memory, input.get());
  input.reset();
  Watched watched{process, output, limits, {}};
  Ending ending;
  ending.how = watch(watched);
  int status = 0;
  ending.resists = !reap(process, status);
  if (output.get() >= 0) watched.drain();
  ending.last_lines = watched.lines.text();
  ending.printed = watched.lines.bytes();
  if (ending.how != Ending::How::exited || ending.resists) return ending;
  if (WIFSIGNALED(status)) ending.how = Ending::How::signalled;
  ending.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return ending;
}

}  // namespace indexpool::verify::plugin
