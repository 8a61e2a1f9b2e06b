// The program under test, run as a user runs it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace indexpool::cli {

struct Outcome {
  int code = -1;  // exit code; -1 when it did not exit
  std::string out, err;
};
Outcome indexpool(const std::vector<std::string>& arguments);

// A folder of this test's own, empty at first and removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const;  // of what lies in it, sorted

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
std::string golden(const std::string& name);  // path of tests/golden/<name>.safetensors
bool contains(const std::string& text, std::string_view part);

}  // namespace indexpool::cli
