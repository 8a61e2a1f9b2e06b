#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#include "indexpool/model/error.hpp"

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

// out[block] = sum of the block's 256 values: a tree in shared memory.
void reduce(const float* in, float* out, bool with_barriers) {
  auto* sums = reinterpret_cast<float*>(dynamic_shared());
  const int t = thread_index();
  store_shared(sums + t, load_global(in + block_index() * block_threads() + t));
  for (int half = block_threads() / 2; half > 0; half /= 2) {
    if (with_barriers) sync_block();
    if (t < half) store_shared(sums + t, add(load_shared(sums + t), load_shared(sums + t + half)));
  }
  if (t == 0) store_global(out + block_index(), load_shared(sums));
}

std::vector<float> reduced(LaneOrder order, std::uint64_t seed, bool with_barriers) {
  Machine machine;
  machine.session.options.order = order;
  machine.session.options.seed = seed;
  std::vector<float> values(3 * 256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const float* in = machine.filled("in", values);
  auto* out = machine.empty<float>("out", 3);
  machine.run(3, 256, 256 * 4, [&] { reduce(in, out, with_barriers); });
  return copy_of(out, 3);
}

TEST(Launch, ReductionIsTheSameInEveryOrder) {
  const std::vector<float> forward = reduced(LaneOrder::forward, 1, true);
  double sum = 0;
  for (int i = 0; i < 256; ++i) sum += 1.0 / (i + 1);
  EXPECT_NEAR(forward[0], sum, 1e-5);
  EXPECT_EQ(reduced(LaneOrder::reverse, 1, true), forward);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(reduced(LaneOrder::random, seed, true), forward) << "seed " << seed;
  }
}

TEST(Launch, MissingBarrierShowsInTheOrder) {
  const std::vector<float> right = reduced(LaneOrder::forward, 1, true);
  EXPECT_NE(reduced(LaneOrder::forward, 1, false), right);
  EXPECT_NE(reduced(LaneOrder::reverse, 1, false), reduced(LaneOrder::forward, 1, false));
}

std::vector<int> turns(LaneOrder order, std::uint64_t seed, std::vector<std::int64_t> blocks) {
  Machine machine;
  machine.session.options.order = order;
  machine.session.options.seed = seed;
  machine.session.options.blocks = std::move(blocks);
  std::vector<int> seen;
  machine.run(10, 64, 0, [&] {
    if (block_index() == 7) seen.push_back(thread_index());
    sync_block();
    if (block_index() == 7) seen.push_back(thread_index());
  });
  return seen;
}

TEST(Launch, OrdersAreWhatTheySay) {
  std::vector<int> up(64);
  std::iota(up.begin(), up.end(), 0);
  std::vector<int> twice_up = up, twice_down(up.rbegin(), up.rend());
  twice_up.insert(twice_up.end(), up.begin(), up.end());
  twice_down.insert(twice_down.end(), up.rbegin(), up.rend());
  EXPECT_EQ(turns(LaneOrder::forward, 1, {}), twice_up);
  EXPECT_EQ(turns(LaneOrder::reverse, 1, {}), twice_down);
  const std::vector<int> random = turns(LaneOrder::random, 1, {});
  ASSERT_EQ(random.size(), 128u);
  EXPECT_NE(random, twice_up);
  EXPECT_NE(turns(LaneOrder::random, 2, {}), random);
}

TEST(Launch, RandomOrderDependsOnSeedAndBlockAlone) {
  EXPECT_EQ(turns(LaneOrder::random, 5, {}), turns(LaneOrder::random, 5, {}));
  EXPECT_EQ(turns(LaneOrder::random, 5, {7}), turns(LaneOrder::random, 5, {1, 2, 7, 9}));
}

TEST(Launch, ThreadsKnowWhereTheyAre) {
  Machine machine;
  machine.session.options.blocks = {4, 2'000'000'000};
  std::vector<std::int64_t> blocks;
  machine.run(2'147'483'647, 96, 16, [&] {
    EXPECT_EQ(grid_blocks(), 2'147'483'647);
    EXPECT_EQ(block_threads(), 96);
    EXPECT_EQ(lane_index(), thread_index() % 32);
    EXPECT_EQ(warp_index(), thread_index() / 32);
    if (thread_index() == 95) blocks.push_back(block_index());
  });
  EXPECT_EQ(blocks, (std::vector<std::int64_t>{4, 2'000'000'000}));
}

TEST(Launch, SharedMemoryIsPoisonedForEveryBlock) {
  Machine machine;
  int poisoned = 0;
  machine.run(3, 32, 128, [&] {
    auto* word = reinterpret_cast<std::uint32_t*>(dynamic_shared()) + thread_index();
    poisoned += load_shared(word) == 0x7fff7fffu;
    store_shared(word, 0u);
  });
  EXPECT_EQ(poisoned, 3 * 32);
}

TEST(Launch, ExceptionOfAThreadEndsTheLaunchAndUnwindsTheOthers) {
  struct Alive {
    int& count;
    explicit Alive(int& c) : count(c) { ++count; }
    ~Alive() { --count; }
  };
  Machine machine;
  int alive = 0, most = 0;
  const auto kernel = [&] {
    const Alive self(alive);
    most = std::max(most, alive);
    if (thread_index() == 40) throw std::out_of_range("from thread 40");
    sync_block();
  };
  EXPECT_THROW(machine.run(2, 64, 0, kernel), std::out_of_range);
  EXPECT_EQ(most, 41);
  EXPECT_EQ(alive, 0);
  int ran = 0;
  machine.run(2, 64, 0, [&] { ++ran; });
  EXPECT_EQ(ran, 128);
}

TEST(Launch, FailedLaunchCountsNothing) {
  Machine machine;
  const float* in = machine.filled<float>("in", std::vector<float>(32));
  EXPECT_EQ(
      blame([&] { machine.run(1, 32, 0, [&] { load_global(in + thread_index() + 1); }); }).kind,
      "out_of_bounds");
  EXPECT_EQ(machine.session.counted, Traffic{});
  machine.run(1, 32, 0, [&] { load_global(in + thread_index()); });
  EXPECT_EQ(machine.session.counted.global_load, Bytes(128));
}

TEST(Launch, RefusesShapesNoDeviceTakes) {
  Machine machine;
  const auto nothing = [] {};
  EXPECT_THROW(machine.run(1, 33, 0, nothing), InternalError);
  EXPECT_THROW(machine.run(1, 0, 0, nothing), InternalError);
  EXPECT_THROW(machine.run(1, 1056, 0, nothing), InternalError);
  EXPECT_THROW(machine.run(-1, 32, 0, nothing), InternalError);
  EXPECT_THROW(machine.run(std::int64_t{1} << 31, 32, 0, nothing), InternalError);
  EXPECT_THROW(machine.run(1, 32, 228 * 1024, nothing), InternalError);
  machine.session.options.blocks = {1};
  EXPECT_THROW(machine.run(1, 32, 0, nothing), InternalError);
  EXPECT_THROW(sync_block(), InternalError);
}

TEST(Launch, NestedLaunchIsRefused) {
  Machine machine;
  EXPECT_THROW(machine.run(1, 32, 0, [&] { machine.run(1, 32, 0, [] {}); }), InternalError);
}

// The buffer's own pages: what a sanitizer or an allocator keeps beside them is not the executor's.
std::int64_t resident_bytes(const void* begin, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const std::uintptr_t length = reinterpret_cast<std::uintptr_t>(begin) + bytes - first;
  std::vector<unsigned char> in_core((length + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(first), length, in_core.data()) != 0) return -1;
  const auto resident = std::count_if(in_core.begin(), in_core.end(),
                                      [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<std::int64_t>(resident) * static_cast<std::int64_t>(page);
}

TEST(Launch, SampledBlocksOfAHugeGridTouchLittle) {
  Machine machine;
  const std::int64_t bytes = std::int64_t{40} << 30;
  const std::int64_t blocks = bytes / (256 * 16);  // 16 bytes a thread
  auto* buffer =
      reinterpret_cast<Vec16*>(machine.memory.allocate("huge", bytes, std::byte{0}, true));
  std::vector<std::int64_t>& sampled = machine.session.options.blocks;
  for (std::int64_t block = 0; block < blocks; block += 20'011) sampled.push_back(block);
  sampled.push_back(blocks - 1);
  const std::int64_t before = resident_bytes(buffer, bytes);
  EXPECT_GE(before, 0);
  machine.run(blocks, 256, 0, [&] {
    const std::int64_t i = block_index() * block_threads() + thread_index();
    const Vec16 old = load_global(buffer + i);
    store_global(buffer + i, Vec16{static_cast<std::uint32_t>(i), old.x, old.y, 1});
  });
  EXPECT_LT(resident_bytes(buffer, bytes) - before, 100'000'000);
  const std::int64_t last = bytes / 16 - 1;
  EXPECT_GT(last * 16, std::int64_t{1} << 32);
  EXPECT_EQ(buffer[last].x, static_cast<std::uint32_t>(last));
  EXPECT_EQ(buffer[last].y, 0u);
  EXPECT_EQ(machine.session.counted.global_store,
            Bytes(static_cast<std::int64_t>(sampled.size()) * 4096));
  EXPECT_EQ(machine.memory.check_guards(), "");
}

}  // namespace
}  // namespace indexpool::sim::simt
