#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

TEST(Barrier, ReachedByASubsetAfterOthersLeft) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    unsigned line = 0;
    const Blame found = blame([&] {
      machine.run(2, 128, 0, [&] {
        if (thread_index() >= 96) return;
        line = __LINE__, sync_block();
      });
    });
    EXPECT_EQ(found.kind, "divergent_barrier");
    EXPECT_EQ(found.line, line);
    EXPECT_NE(found.text.find("96 of 128 threads"), std::string::npos) << found.text;
    EXPECT_NE(found.text.find("barrier_test.cpp:" + std::to_string(line)), std::string::npos);
    EXPECT_NE(found.text.find("block 0"), std::string::npos) << found.text;
  }
}

TEST(Barrier, TwoBarriersAreNotOne) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    unsigned first = 0, second = 0;
    const Blame found = blame([&] {
      machine.run(1, 64, 0, [&] {
        if (thread_index() < 32) {
          first = __LINE__, sync_block();
        } else {
          second = __LINE__, sync_block();
        }
      });
    });
    EXPECT_EQ(found.kind, "divergent_barrier");
    EXPECT_TRUE(found.line == first || found.line == second);
    EXPECT_NE(found.text.find("wait at another barrier"), std::string::npos) << found.text;
  }
}

TEST(Barrier, LeavingEarlyIsFineWhenNobodyWaits) {
  Machine machine;
  int late = 0;
  machine.run(1, 64, 0, [&] {
    sync_block();
    if (thread_index() < 32) return;
    sync_warp();
    ++late;
  });
  EXPECT_EQ(late, 32);
}

TEST(Barrier, WaitingForEachOtherIsADeadlock) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    unsigned line = 0;
    const Blame found = blame([&] {
      machine.run(1, 64, 0, [&] {
        if (thread_index() == 3) {
          line = __LINE__, sync_warp(0xffffffffu);
        } else {
          sync_block();
        }
      });
    });
    EXPECT_EQ(found.kind, "deadlock");
    EXPECT_EQ(found.line, line);
    EXPECT_NE(found.text.find("63 wait at the barrier"), std::string::npos) << found.text;
    EXPECT_NE(found.text.find("lanes 0x00000008 of warp 0 wait in sync_warp"), std::string::npos)
        << found.text;
  }
}

TEST(Barrier, EndlessLoopIsHung) {
  Machine machine;
  machine.session.options.max_turns = 10'000;
  unsigned line = 0;
  const Blame found = blame([&] {
    machine.run(1, 32, 0, [&] {
      for (;;) line = __LINE__, sync_block();
    });
  });
  EXPECT_EQ(found.kind, "hung");
  EXPECT_EQ(found.line, line);
}

TEST(Barrier, SpinningOnMemoryIsHung) {
  Machine machine;
  machine.session.options.max_turns = 10'000;
  const int* flag = machine.filled<int>("flag", {0});
  unsigned line = 0;
  const Blame found = blame([&] {
    machine.run(1, 32, 0, [&] {
      while (line = __LINE__, load_global(flag) == 0) {
      }
    });
  });
  EXPECT_EQ(found.kind, "hung");
  EXPECT_EQ(found.line, line);
}

}  // namespace
}  // namespace indexpool::sim::simt
