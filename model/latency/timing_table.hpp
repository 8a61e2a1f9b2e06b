// Tables of measured times, read strictly from published formats: a bad number, a missing column or
// a mistaken unit is a ConfigError with file, line, column and what was expected.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/latency/kernel_shape.hpp"

namespace indexpool {

// One measured time. `kernel` says what ran, as far as two may differ in how fast they are:
// "gemm bf16", "topk_transform_v1 v1_flat k512".
struct TimedRow {
  std::string form;  // name of a KernelForm
  std::string kernel;
  KernelShape shape;
  Seconds time;
  std::int64_t line = 0;
  std::string family;  // rows of one family are fitted on together or held out together
  std::string part;    // how a report groups them: "decode", "over 80 MB"
};

struct TimingTable {
  std::string file, adapter;
  std::string measured_on;     // device as the file names it; "" when it does not
  std::string default_device;  // name of the device file
  std::vector<TimedRow> rows;
  std::int64_t skipped = 0;
  std::string skipped_why;  // "latency 0: fewer entries than topk, nothing ran"
};

struct TimingAdapter {
  std::string_view name;
  std::string_view reads;  // for people: what the file holds and its columns
  // Whether a file of this name that starts with this text is of the format.
  bool (*recognises)(std::string_view file, std::string_view text);
  TimingTable (*read)(const std::string& file, std::string_view text);
};
std::span<const TimingAdapter> timing_adapters();
std::vector<std::string> timing_adapter_names();

// `adapter` empty: the one that recognises the file. Throws ConfigError, also for a table without
// rows and for rows that no device could have timed (see check_plausible).
TimingTable read_timings(const std::string& path, const std::string& adapter = "");
// Refuses times that mean more than 40 TB/s or 5 PFLOP/s, or less than a thousandth of what a slow
// device reaches: then the unit was mistaken.
void check_plausible(const TimingTable& table);

}  // namespace indexpool
