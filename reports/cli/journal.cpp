#include "indexpool/reports/cli/journal.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace {

namespace fs = std::filesystem;

// Whole lines only; the job the run was in when it ended may lack records, so it runs again.
std::vector<Record> read_interrupted(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string all = std::move(text).str();
  std::vector<Record> records;
  std::size_t line = 1;
  for (std::size_t start = 0, end = 0; (end = all.find('\n', start)) != std::string::npos;
       start = end + 1, ++line) {
    records.push_back(record_from_json(all.substr(start, end - start),
                                       fmt::format("{}:{}", path.string(), line)));
  }
  if (!records.empty()) {
    const std::string last = records.back().repeat;
    std::erase_if(records, [&](const Record& record) { return record.repeat == last; });
  }
  return records;
}

}  // namespace

void require_writable_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::path place = fs::absolute(folder, ignored);
  while (!fs::exists(place, ignored) && place != place.parent_path()) place = place.parent_path();
  const char* reason = nullptr;
  if (!fs::is_directory(place, ignored)) {
    reason = "is not a folder";
  } else if (::access(place.c_str(), W_OK | X_OK) != 0) {
    reason = std::strerror(errno);
  }
  if (reason == nullptr) return;
  throw EnvironmentError(
      fmt::format("{}: cannot be written: {}: {}; choose another place with --out", folder.string(),
                  place.string(), reason));
}

Journal::Journal(const fs::path& folder, bool resume)
    : path_(folder / "records.partial.jsonl"), file_(nullptr, &std::fclose) {
  const bool interrupted = fs::exists(path_);
  if (interrupted && !resume) {
    throw ConfigError(fmt::format(
        "{} was left by an interrupted run; add --resume to continue it, or remove the file",
        path_.string()));
  }
  if (interrupted) {
    records_ = read_interrupted(path_);
  } else if (resume && fs::exists(folder / "records.jsonl")) {
    records_ = read_records(folder / "records.jsonl");
  }
  for (const Record& record : records_) finished_.insert(record.repeat);
  if (interrupted || !records_.empty()) {
    write_records(path_, records_);
  } else {
    require_writable_folder(folder);
    made_folder_ = fs::create_directories(folder);
  }
  file_.reset(std::fopen(path_.c_str(), "ab"));
  if (!file_) {
    throw EnvironmentError(
        fmt::format("could not write {}: {}", path_.string(), std::strerror(errno)));
  }
}

Journal::~Journal() {
  if (!file_ || !records_.empty()) return;
  file_.reset();
  std::error_code ignored;
  fs::remove(path_, ignored);
  // Folders that held something are kept: remove() refuses them.
  if (made_folder_) fs::remove(path_.parent_path(), ignored);
}

void Journal::append(const std::vector<Record>& records) {
  std::string lines;
  for (const Record& record : records) {
    lines += to_json_line(record);
    if (lines.back() != '\n') lines += '\n';
  }
  const bool written = std::fwrite(lines.data(), 1, lines.size(), file_.get()) == lines.size();
  if (!written || std::fflush(file_.get()) != 0) {
    throw EnvironmentError(
        fmt::format("could not write {}: {}", path_.string(), std::strerror(errno)));
  }
  records_.insert(records_.end(), records.begin(), records.end());
}

void Journal::remove() {
  file_.reset();
  fs::remove(path_);
}

}  // namespace indexpool::cli
