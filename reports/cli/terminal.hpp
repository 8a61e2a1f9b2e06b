// What commands say, and where: tables on stdout or in a file, progress on a terminal's stderr.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/table.hpp"

namespace CLI {
class App;
}

namespace indexpool::cli {

// --format; checked when used, so that a near miss is named.
struct FormatOption {
  std::string name = "table";
  void declare(CLI::App& app);
  reports::Format parsed() const;  // ConfigError
};

void print(const std::string& text);  // to stdout
void note(const std::string& text);   // a line to stderr
bool colour_wanted();                 // stdout is a terminal

// The side-by-side table, and for people below it the verdict and what to look at with the lines
// that repeat it.
void print_records(const std::vector<Record>& records, reports::Format format);

int exit_code(const std::vector<Record>& records);

// A line on stderr that is overwritten, from the second second on and only on a terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text);

 private:
  void clear();

  std::chrono::steady_clock::time_point start_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace indexpool::cli
