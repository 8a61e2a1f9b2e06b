// Every way to go wrong gets a verdict that says so, in time, and the run goes on.
#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "plugins.hpp"

namespace indexpool::verify {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

struct Expected {
  const char* plugin;
  Status status;
  const char* check;                // that says so
  std::vector<std::string> reason;  // parts of it
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.plugin; }

class BadPlugin : public testing::TestWithParam<Expected> {};

// All misbehave in `pool` and are right in the operations after it.
TEST_P(BadPlugin, GetsAVerdictThatSaysSoAndTheRunGoesOn) {
  const Expected& expected = GetParam();
  PluginLimits limits = short_limits();
  limits.memory_bytes = 256 << 20;
  limits.printed_bytes = 4 << 20;
  if (contains(expected.reason.empty() ? "" : expected.reason[0], "still ran")) limits.seconds = 2;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Record> records = check_small(expected.plugin, limits);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), limits.seconds + 20);

  const Verdict& verdict = record_of(records, "pool").verdict;
  EXPECT_EQ(verdict.status, expected.status) << verdict.reason;
  for (const std::string& part : expected.reason) {
    EXPECT_TRUE(contains(verdict.reason, part)) << verdict.reason << "\nlacks: " << part;
  }
  if (*expected.check != '\0') {
    const Check* check = find_check(verdict, expected.check);
    ASSERT_NE(check, nullptr) << verdict.reason;
    EXPECT_EQ(check->status, expected.status);
    EXPECT_EQ(check->violations > 0, expected.status != Status::passed);
  }
  for (const char* op : {"quantize_query", "logits", "topk"}) {
    EXPECT_EQ(record_of(records, op).verdict.status, Status::passed)
        << op << ": " << record_of(records, op).verdict.reason;
  }
  // Whatever it printed or threw: the record is one line of JSON, and reads back as it was.
  const Record& record = record_of(records, "pool");
  EXPECT_EQ(record_from_json(to_json_line(record), "test"), record);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, BadPlugin,
    testing::Values(
        Expected{"null_write",
                 Status::error,
                 "process",
                 {"SIGSEGV in its first call", "wrote through a null pointer"}},
        Expected{"null_read", Status::error, "process", {"SIGSEGV", "read through a null pointer"}},
        Expected{"wild_write", Status::error, "process", {"SIGSEGV", "0x700000000000"}},
        Expected{"write_input",
                 Status::error,
                 "process",
                 {"SIGSEGV", "wrote to byte 20 of input `keys`", "read-only"}},
        Expected{"read_past_input",
                 Status::error,
                 "process",
                 {"SIGSEGV", "read", "past the end of input `keys`"}},
        Expected{"stack_overflow", Status::error, "process", {"SIGSEGV", "stack overflowed"}},
        Expected{"divide_by_zero", Status::error, "process", {"SIGFPE", "division by zero"}},
        Expected{"busy_loop",
                 Status::error,
                 "process",
                 {"still ran after 2 s, in its first call", "--time-limit"}},
        Expected{"sleep_forever", Status::error, "process", {"still ran after 2 s"}},
        Expected{"second_call", Status::error, "process", {"SIGSEGV in its second call"}},
        Expected{"too_few",
                 Status::failed,
                 "sizes",
                 {"`pool_codes`: 121 elements written, expected 128"}},
        Expected{"too_many",
                 Status::failed,
                 "sizes",
                 {"`pool_codes`: 129 elements written, expected 128", "capacity"}},
        Expected{"size_not_set",
                 Status::failed,
                 "sizes",
                 {"`pool_codes`", "was not set", "set *pool_codes.written to 128"}},
        Expected{"unwritten",
                 Status::failed,
                 "written",
                 {"`pool_codes`: element 9, at [0, 9] was left unwritten"}},
        Expected{"differs", Status::failed, "rerun", {"`pool_codes`: element 3, at [0, 3]"}},
        Expected{"wrong_value", Status::failed, "quantiser", {"channel 3"}},
        Expected{"error_code",
                 Status::error,
                 "process",
                 {"returned error code 7 from its first call",
                  "it printed: first line | no device of compute capability 9.0"}},
        Expected{"unsupported", Status::unsupported, "", {"does not take this problem"}}));

INSTANTIATE_TEST_SUITE_P(
    Processes, BadPlugin,
    testing::Values(
        Expected{"exit_zero",
                 Status::error,
                 "process",
                 {"ended its process (exit status 0) in its first call"}},
        Expected{"quick_exit", Status::error, "process", {"exit status 3"}},
        Expected{"aborts",
                 Status::error,
                 "process",
                 {"SIGABRT in its first call", "it printed: assertion `rows > 0' failed"}},
        Expected{"throws",
                 Status::error,
                 "process",
                 {"threw std::runtime_error: no more streams in its first call"}},
        Expected{"throws_number", Status::error, "process", {"threw int"}},
        Expected{"kills_itself", Status::error, "process", {"SIGKILL", "killed from outside"}},
        Expected{"prints_without_end",
                 Status::error,
                 "process",
                 {"printed more than 4 MiB in its first call", "still ?[31m? going"}},
        Expected{"allocates_without_end",
                 Status::error,
                 "process",
                 {"used more than 256 MiB of memory in its first call", "--memory-limit"}},
        Expected{"thread_left_running", Status::failed, "threads", {"2 of 2 threads", "join them"}},
        Expected{"thread_left_waiting", Status::passed, "threads", {}},
        Expected{"writes_after_returning",
                 Status::error,
                 "process",
                 {"SIGSEGV", "wrote to byte 5 of output `pool_codes`", "had returned"}},
        Expected{"crashes_in_a_thread",
                 Status::error,
                 "process",
                 {"SIGSEGV in its first call", "null pointer"}},
        Expected{"process_left_running", Status::failed, "threads", {"left a process running"}},
        Expected{"closes_everything", Status::passed, "process", {}}));

TEST(Plugin, WhatIsPrintedIsKeptShortAndHarmsNothing) {
  const std::vector<Record> records = check_small("prints_megabytes", PluginLimits{});
  EXPECT_EQ(record_of(records, "pool").verdict.status, Status::passed)
      << record_of(records, "pool").verdict.reason;
}

TEST(Plugin, AskingForMoreMemoryThanTheLimitFails) {
  if (sanitized) GTEST_SKIP() << "the sanitizer answers instead of the limit";
  PluginLimits limits = short_limits();
  limits.memory_bytes = 256 << 20;
  const auto records = check_small("asks_for_too_much", limits);
  const Verdict& verdict = record_of(records, "pool").verdict;
  EXPECT_EQ(verdict.status, Status::error);
  EXPECT_TRUE(contains(verdict.reason, "threw std::bad_alloc")) << verdict.reason;
}

TEST(Plugin, AProcessThatForksInACallIsReported) {
  const auto records = check_small("comes_back_twice");
  EXPECT_EQ(record_of(records, "logits").verdict.status, Status::passed);
}

struct Outside {
  const char* op;
  const char* output;
  int bytes;
};
void PrintTo(const Outside& outside, std::ostream* out) {
  *out << outside.output << (outside.bytes < 0 ? " before" : " after");
}

class OutsideWrite : public testing::TestWithParam<Outside> {};

// A single byte, on either side, next to the buffer and a page away.
TEST_P(OutsideWrite, IsSeenByteForByteAndTheBufferNamed) {
  const Outside& outside = GetParam();
  for (const int distance : {outside.bytes, 70 * outside.bytes, 5000 * outside.bytes}) {
    setenv("PLUGIN_TEST_OUTPUT", outside.output, 1);
    setenv("PLUGIN_TEST_DISTANCE", std::to_string(distance).c_str(), 1);
    const std::vector<Record> records = check_small("outside");
    unsetenv("PLUGIN_TEST_OUTPUT");
    for (const Record& record : records) {
      if (record.op != outside.op) {
        EXPECT_EQ(record.verdict.status, Status::passed) << record.verdict.reason;
        continue;
      }
      const std::string& reason = record.verdict.reason;
      EXPECT_TRUE(record.verdict.status == Status::failed ||
                  record.verdict.status == Status::error);
      EXPECT_TRUE(contains(reason, std::string("`") + outside.output + "`")) << reason;
      const std::string count =
          std::abs(distance) == 1 ? "1 byte" : std::to_string(std::abs(distance)) + " bytes";
      EXPECT_TRUE(contains(reason, count + (distance < 0 ? " before" : " past the end of")))
          << reason;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Outputs, OutsideWrite,
    testing::Values(Outside{"pool", "pool_codes", -1}, Outside{"pool", "pool_codes", 1},
                    Outside{"pool", "pool_scales", -1}, Outside{"pool", "pool_scales", 1},
                    Outside{"quantize_query", "query_codes", -1},
                    Outside{"quantize_query", "query_codes", 1},
                    Outside{"quantize_query", "query_scales", -1},
                    Outside{"quantize_query", "query_scales", 1}, Outside{"logits", "logits", -1},
                    Outside{"logits", "logits", 1}, Outside{"topk", "selection", -1},
                    Outside{"topk", "selection", 1}));

}  // namespace
}  // namespace indexpool::verify
