#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

constexpr std::uint32_t poison = 0x7fff7fffu;

struct Stage {
  Machine machine;
  const Vec16* in = nullptr;
  std::vector<std::uint32_t> seen;

  explicit Stage(LaneOrder order) : seen(64 * 4, 0) {
    machine.session.options.order = order;
    std::vector<Vec16> values(64 * 4);
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = {i + 1, i, i, i};
    in = machine.filled("in", values);
  }
};

Vec16* stage(int number) {
  return reinterpret_cast<Vec16*>(dynamic_shared()) + number * block_threads();
}

// A pipeline of two stages over four tiles; each thread reads what its neighbour copied.
void pipeline(const Vec16* in, std::vector<std::uint32_t>& seen, bool wait, bool barrier) {
  const int t = thread_index();
  async_copy_16(stage(0) + t, in + t);
  async_commit();
  for (int tile = 0; tile < 4; ++tile) {
    if (tile + 1 < 4) async_copy_16(stage((tile + 1) % 2) + t, in + (tile + 1) * 64 + t);
    async_commit();
    if (wait) async_wait<1>();
    if (barrier) sync_block();
    seen[tile * 64 + t] = load_shared(stage(tile % 2) + (t ^ 63)).x;
    sync_block();
  }
}

TEST(AsyncCopy, PipelineDeliversEveryTile) {
  for (const LaneOrder order : all_orders) {
    Stage s(order);
    s.machine.run(1, 64, 2 * 64 * 16, [&] { pipeline(s.in, s.seen, true, true); });
    for (int i = 0; i < 256; ++i) {
      EXPECT_EQ(s.seen[i], static_cast<std::uint32_t>((i ^ 63) + 1));
    }
  }
}

TEST(AsyncCopy, MissingWaitReadsPoisonEveryTime) {
  for (const LaneOrder order : all_orders) {
    Stage s(order);
    s.machine.run(1, 64, 2 * 64 * 16, [&] { pipeline(s.in, s.seen, false, true); });
    for (const std::uint32_t value : s.seen) EXPECT_EQ(value, poison);
  }
}

TEST(AsyncCopy, MissingBarrierReadsPoisonInSomeOrder) {
  Stage forward(LaneOrder::forward), reverse(LaneOrder::reverse);
  forward.machine.run(1, 64, 2 * 64 * 16, [&] { pipeline(forward.in, forward.seen, true, false); });
  reverse.machine.run(1, 64, 2 * 64 * 16, [&] { pipeline(reverse.in, reverse.seen, true, false); });
  EXPECT_EQ(forward.seen[0], poison);
  EXPECT_EQ(reverse.seen[63], poison);
  EXPECT_NE(forward.seen, reverse.seen);
}

TEST(AsyncCopy, WaitLeavesTheNewestGroupsOnTheirWay) {
  Stage s(LaneOrder::forward);
  std::vector<std::uint32_t> seen;
  s.machine.run(1, 32, 4 * 32 * 16, [&] {
    const int t = thread_index();
    for (int group = 0; group < 4; ++group) {
      async_copy_16(stage(group) + t, s.in + group);
      if (group < 3) async_commit();  // the last copy belongs to no group yet
    }
    const auto look = [&] {
      for (int i = 0; i < 4 && t == 0; ++i) seen.push_back(load_shared(stage(i)).x);
    };
    look();
    async_wait<2>();
    look();
    async_wait<0>();
    look();
    async_commit();
    async_wait<0>();
    look();
  });
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{poison, poison, poison, poison,  //
                                              1, poison, poison, poison,       //
                                              1, 2, 3, poison,                 //
                                              1, 2, 3, 4}));
}

TEST(AsyncCopy, InactiveCopyWritesZerosAndReadsNothing) {
  Machine machine;
  std::vector<std::uint32_t> seen;
  machine.run(1, 32, 32 * 16, [&] {
    async_copy_16(stage(0) + thread_index(), nullptr, false);
    if (thread_index() == 0) seen.push_back(load_shared(stage(0)).w);
    async_commit();
    async_wait<0>();
    if (thread_index() == 0) seen.push_back(load_shared(stage(0)).w);
  });
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{poison, 0}));
  EXPECT_EQ(machine.session.counted.global_load, Bytes(0));
}

TEST(AsyncCopy, BadAddressIsBlamedAtTheCopy) {
  Machine machine;
  const Vec16* in = machine.filled<Vec16>("in", std::vector<Vec16>(32));
  unsigned line = 0;
  const auto run = [&](const Vec16* from, int to) {
    return blame([&] {
      machine.run(1, 32, 32 * 16,
                  [&] { line = __LINE__, async_copy_16(dynamic_shared() + to, from); });
    });
  };
  const Blame beyond = run(in + 32, 0), misaligned = run(in, 8), outside = run(in, 32 * 16);
  EXPECT_EQ(beyond.kind, "out_of_bounds");
  EXPECT_EQ(misaligned.kind, "misaligned");
  EXPECT_EQ(outside.kind, "out_of_bounds");
  EXPECT_EQ(beyond.line, line);
  EXPECT_EQ(misaligned.line, line);
  EXPECT_EQ(outside.line, line);
}

}  // namespace
}  // namespace indexpool::sim::simt
