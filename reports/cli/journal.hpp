// Records of a long run, kept as they come so that an interrupted run loses nothing.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "indexpool/model/record.hpp"

namespace indexpool::cli {

// Before a long run, not after it: EnvironmentError when nothing can be made in `folder`, which
// need not exist yet.
void require_writable_folder(const std::filesystem::path& folder);

// <folder>/records.partial.jsonl while the run lasts. A job is what one repeat line repeats.
class Journal {
 public:
  // Without `resume`, throws ConfigError when an interrupted run left its journal in the folder.
  // With it, takes over the records of finished jobs from the journal or from records.jsonl.
  Journal(const std::filesystem::path& folder, bool resume);
  // A run that ends before its first record leaves no journal: there is nothing to continue.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  bool finished(const std::string& repeat) const { return finished_.contains(repeat); }
  const std::vector<Record>& records() const { return records_; }
  void append(const std::vector<Record>& records);  // of one job; on disk when it returns
  void remove();                                    // once the report is written

 private:
  std::filesystem::path path_;
  bool made_folder_ = false;
  std::vector<Record> records_;
  std::set<std::string> finished_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace indexpool::cli
