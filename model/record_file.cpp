// Files are written whole or not at all.
#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"

namespace indexpool {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, std::string_view reason) {
  throw EnvironmentError(fmt::format("{}: cannot be written: {}; choose another place with --out",
                                     path.string(), reason));
}

// Unique among processes and threads, and in the same folder, so that the rename is atomic.
fs::path temporary_name(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  fs::path name = path;
  name += fmt::format(".{}.{}.tmp", ::getpid(), count.fetch_add(1));
  return name;
}

void write_whole(const fs::path& path, std::string_view text) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) {
    const std::error_code reason(errno, std::generic_category());
    std::error_code ignored;
    fs::remove(path, ignored);
    cannot_write(path, errno == 0 ? "the write failed" : reason.message());
  }
}

}  // namespace

void write_text(const fs::path& path, std::string_view text) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) cannot_write(path, fmt::format("its folder: {}", error.message()));
  if (fs::is_directory(path)) cannot_write(path, "it is a folder");
  const fs::path temporary = temporary_name(path);
  write_whole(temporary, text);
  fs::rename(temporary, path, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  cannot_write(path, error.message());
}

void write_records(const fs::path& path, const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) text += to_json_line(record) + '\n';
  write_text(path, text);
}

std::vector<Record> read_records(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || fs::is_directory(path)) {
    throw ConfigError(fmt::format(
        "{}: cannot be read; expected a file of records, one JSON object a line", path.string()));
  }
  std::vector<Record> records;
  std::string line;
  for (std::int64_t count = 1; std::getline(stream, line); ++count) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      throw ConfigError(fmt::format("{}, line {}: found an empty line, expected one record a line",
                                    path.string(), count));
    }
    records.push_back(record_from_json(line, fmt::format("{}, line {}", path.string(), count)));
  }
  return records;
}

}  // namespace indexpool
