#include "indexpool/verify/plugin/worker_threads.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <string>
#include <time.h>
#include <unistd.h>

namespace indexpool::verify::plugin {
namespace {

// The state letter of a task, after the name in parentheses: 'R' runs, 'S' sleeps.
char state_of(const char* task) {
  const std::string path = std::string("/proc/self/task/") + task + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return '?';
  char text[512] = {};
  const std::size_t read = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  const char* name_end = std::strrchr(text, ')');
  return read > 0 && name_end != nullptr && name_end[1] != '\0' ? name_end[2] : '?';
}

Leftovers look() {
  Leftovers left;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return left;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == gettid()) continue;
    const char state = state_of(entry->d_name);
    if (state == '?' || state == 'Z' || state == 'X') continue;
    ++left.threads;
    if (state == 'R') ++left.running;
  }
  closedir(tasks);
  return left;
}

}  // namespace

Leftovers wait_for_threads() {
  constexpr int looks = 50, at_rest_for = 20;
  constexpr timespec pause{0, 5'000'000};
  Leftovers left;
  for (int i = 0, rested = 0; i < looks && rested < at_rest_for; ++i) {
    left = look();
    if (left.threads == 0) return left;
    rested = left.running == 0 ? rested + 1 : 0;
    nanosleep(&pause, nullptr);
  }
  return left;
}

}  // namespace indexpool::verify::plugin
