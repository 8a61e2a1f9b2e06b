// What the thread sanitizer says about kernels, read from a child process: a report ends as text on
// its standard error. Only built with the sanitizer (preset "tsan").
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

// A load whose value nobody uses would be compiled away.
void use(int value) { asm volatile("" : : "r"(value)); }

// Every thread writes its own word and reads its neighbour's in the next warp (or lane).
constexpr unsigned block_store_line = __LINE__ + 3, block_load_line = __LINE__ + 5;
void exchange_in_block(bool with_barrier) {
  auto* words = reinterpret_cast<int*>(dynamic_shared());
  store_shared(words + thread_index(), thread_index());
  if (with_barrier) sync_block();
  use(load_shared(words + (thread_index() ^ 32)));
}

constexpr unsigned warp_store_line = __LINE__ + 3, warp_load_line = __LINE__ + 6;
void exchange_in_warp(bool with_barrier) {
  auto* words = reinterpret_cast<int*>(dynamic_shared());
  store_shared(words + thread_index(), thread_index());
  ballot(full_mask, true);  // makes lanes meet, but orders no memory
  if (with_barrier) sync_warp();
  use(load_shared(words + (thread_index() ^ 1)));
}

// A buffer that is filled again too early: the second barrier of each turn is missing.
constexpr unsigned reuse_store_line = __LINE__ + 4, reuse_load_line = __LINE__ + 6;
void reuse(bool with_barrier) {
  auto* words = reinterpret_cast<int*>(dynamic_shared());
  for (int turn = 0; turn < 3; ++turn) {
    store_shared(words + thread_index(), turn);
    sync_block();
    use(load_shared(words + (thread_index() ^ 32)));
    if (with_barrier) sync_block();
  }
}

// The copy may land from its start on, so that is where it first races with the reader.
constexpr unsigned copy_line = __LINE__ + 4, copy_load_line = __LINE__ + 8;
void refill_by_async_copy(const Vec16* in, bool with_barrier) {
  auto* words = reinterpret_cast<Vec16*>(dynamic_shared());
  for (int turn = 0; turn < 2; ++turn) {
    async_copy_16(words + thread_index(), in + thread_index());
    async_commit();
    async_wait<0>();
    sync_block();
    use(static_cast<int>(load_shared(words + (thread_index() ^ 32)).x));
    if (with_barrier) sync_block();
  }
}

constexpr unsigned global_store_line = __LINE__ + 1;
void all_store_one_word(int* out, bool) { store_global(out, 1); }

void run_kernel(const std::string& name, bool with_barrier) {
  Machine machine;
  const Vec16* in = machine.filled<Vec16>("in", std::vector<Vec16>(64));
  int* out = machine.empty<int>("out", 1);
  for (const LaneOrder order : all_orders) {
    machine.session.options.order = order;
    machine.run(2, 64, 64 * 16, [&] {
      if (name == "block") exchange_in_block(with_barrier);
      if (name == "warp") exchange_in_warp(with_barrier);
      if (name == "reuse") reuse(with_barrier);
      if (name == "copy") refill_by_async_copy(in, with_barrier);
      if (name == "global") all_store_one_word(out, with_barrier);
    });
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The child: not a test of its own.
TEST(RaceChild, DISABLED_Runs) {
  run_kernel(variable("SIMT_RACE_KERNEL"), variable("SIMT_RACE_BARRIER") == "1");
}

struct Child {
  std::string output;
  int status = 0;
};

Child run_child(const std::string& kernel, bool with_barrier) {
  const std::string command =
      "SIMT_RACE_KERNEL=" + kernel + " SIMT_RACE_BARRIER=" + (with_barrier ? "1" : "0") +
      " TSAN_OPTIONS=exitcode=66 $(readlink /proc/" + std::to_string(getpid()) +
      "/exe) --gtest_filter=RaceChild.DISABLED_Runs --gtest_also_run_disabled_tests 2>&1";
  Child child;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return child;
  std::array<char, 4096> chunk;
  while (std::fgets(chunk.data(), chunk.size(), pipe)) child.output += chunk.data();
  child.status = pclose(pipe);
  return child;
}

void expect_race(const std::string& kernel, std::initializer_list<unsigned> lines) {
  const Child racy = run_child(kernel, false);
  EXPECT_NE(racy.output.find("WARNING: ThreadSanitizer: data race"), std::string::npos)
      << racy.output;
  EXPECT_NE(racy.status, 0);
  for (const unsigned line : lines) {
    EXPECT_NE(racy.output.find("race_test.cpp:" + std::to_string(line)), std::string::npos)
        << "line " << line << " is not in\n"
        << racy.output;
  }
}

void expect_silence(const std::string& kernel) {
  const Child clean = run_child(kernel, true);
  EXPECT_EQ(clean.status, 0) << clean.output;
  EXPECT_EQ(clean.output.find("ThreadSanitizer"), std::string::npos) << clean.output;
  EXPECT_NE(clean.output.find("[  PASSED  ] 1 test."), std::string::npos) << clean.output;
}

TEST(Race, MissingBlockBarrierIsReportedAtItsLines) {
  expect_race("block", {block_store_line, block_load_line});
  expect_silence("block");
}

TEST(Race, MissingWarpSyncIsReportedAtItsLines) {
  expect_race("warp", {warp_store_line, warp_load_line});
  expect_silence("warp");
}

TEST(Race, BufferReusedTooEarlyIsReportedAtItsLines) {
  expect_race("reuse", {reuse_store_line, reuse_load_line});
  expect_silence("reuse");
}

TEST(Race, AsynchronousCopyIntoABufferStillReadIsReported) {
  expect_race("copy", {copy_line, copy_load_line});
  expect_silence("copy");
}

TEST(Race, ThreadsThatStoreOneGlobalWordAreReported) { expect_race("global", {global_store_line}); }

}  // namespace
}  // namespace indexpool::sim::simt
