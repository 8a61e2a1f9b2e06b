#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "indexpool/reports/report.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace indexpool::reports {
namespace {

// A temporary folder, removed with what is in it.
struct ScratchFolder {
  std::filesystem::path path;  // empty when it could not be made
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "indexpool-dot-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

// Runs `dot -Tsvg -o picture source` without a shell; true when it ended well.
bool run_dot(std::string source, std::string picture) {
  std::string program = "dot", type = "-Tsvg", option = "-o";
  std::array<char*, 6> arguments = {program.data(), type.data(),   option.data(),
                                    picture.data(), source.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  if (posix_spawn_file_actions_init(&quiet) != 0) return false;
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, program.c_str(), &quiet, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failure != 0) return false;
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string svg_from_dot(const std::string& dot) {
  const ScratchFolder scratch;
  if (scratch.path.empty()) return "";
  const auto source = scratch.path / "graph.dot", picture = scratch.path / "graph.svg";
  if (!(std::ofstream(source) << dot)) return "";
  if (!run_dot(source.string(), picture.string())) return "";
  std::ostringstream text;
  text << std::ifstream(picture).rdbuf();
  return text.str();
}

}  // namespace indexpool::reports
