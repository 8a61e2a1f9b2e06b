// The one currency: everything that runs writes Records, every report is a function of Records.
// JSON Lines, schema versioned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool {

inline constexpr int record_schema = 1;

// passed      every check held
// marginal    held, but utilisation of a bound is high enough to look at
// failed      a check did not hold
// untrusted   the checks were vacuous (all zeros, bound looser than the signal, no decidable row)
// skipped     not run, by choice or for want of a device
// unsupported the implementation does not take this problem
// error       it crashed, hung, or the executor refused it (divergent barrier, out of bounds)
enum class Status { passed, marginal, failed, untrusted, skipped, unsupported, error };
std::string_view to_string(Status status);
std::optional<Status> status_from_name(std::string_view name);
// skipped < passed < marginal < unsupported < untrusted < failed < error.
Status worst(Status a, Status b);

// One check of a verdict: "bound", "quantiser", "scale", "weight_sum", "checksum", "selection",
// "rerun", "guards", "lane_order", "traffic", "golden".
struct Check {
  std::string name;
  Status status = Status::passed;
  std::string reason;      // first violation, with coordinates; or why it is vacuous
  double utilisation = 0;  // worst error over its bound; 0 for exact checks
  std::int64_t compared = 0, violations = 0;

  bool operator==(const Check&) const = default;
};

struct Verdict {
  Status status = Status::skipped;
  std::string reason;
  std::vector<Check> checks;
  double worst_utilisation = 0;
  std::int64_t rows = 0, decidable_rows = 0;  // selection: rows whose set the bounds decide

  bool operator==(const Verdict&) const = default;
};

struct Measurement {
  Seconds median, p10, p90;
  std::int64_t samples = 0;
  std::string cache;  // "cold" or "warm" L2
  std::string clock;  // "cuda_events", "graph_replay"

  bool operator==(const Measurement&) const = default;
};

struct Environment {
  std::string target;  // "reference", "simt", "cuda"
  std::string device;  // "NVIDIA H200", or the executor's name
  std::string driver, toolkit, compiler, clocks, version;

  bool operator==(const Environment&) const = default;
};

struct Record {
  int schema = record_schema;
  std::string case_name;       // golden case or suite entry
  std::string op;              // to_string(Op), or "pipeline"
  std::string implementation;  // kernel name
  std::string reference;       // what it was compared with
  std::optional<Problem> problem;
  Environment environment;
  Verdict verdict;
  std::optional<Measurement> measurement;
  std::optional<Prediction> prediction;
  std::optional<Traffic> declared, counted;
  std::map<std::string, double> values;  // further named numbers, unit in the name
  std::uint64_t seed = 0;
  std::string repeat;  // the command line that repeats it

  bool operator==(const Record&) const = default;
};

std::string to_json_line(const Record& record);
Record record_from_json(std::string_view line, std::string_view where);  // strict, ConfigError

// Written under a temporary name, then renamed.
void write_records(const std::filesystem::path& path, const std::vector<Record>& records);
std::vector<Record> read_records(const std::filesystem::path& path);

// `text` to `path` under a temporary name in the same folder, then renamed. Creates the folder.
void write_text(const std::filesystem::path& path, std::string_view text);

Status overall_status(const std::vector<Record>& records);  // the worst, skipped not counted

}  // namespace indexpool
