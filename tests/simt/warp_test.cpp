#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

using Words = std::vector<std::uint32_t>;

std::vector<int> lanes_of(std::uint32_t mask) {
  std::vector<int> lanes;
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1u) lanes.push_back(lane);
  }
  return lanes;
}

// Three shuffles of the lanes in `mask`, each value after the other, as arrays.
RC_GTEST_PROP(Warp, ShufflesBehaveLikeArraysForAnyMask, ()) {
  const auto mask = *rc::gen::suchThat<std::uint32_t>([](std::uint32_t m) { return m != 0; });
  const std::vector<int> lanes = lanes_of(mask);
  const auto values =
      *rc::gen::container<std::vector<std::uint64_t>>(32, rc::gen::arbitrary<std::uint64_t>());
  std::vector<int> source(32, 0);
  for (int& s : source) s = *rc::gen::elementOf(lanes);
  const int delta = *rc::gen::inRange(0, 32);
  Machine machine;
  machine.session.options.order = *rc::gen::elementOf(all_orders);
  machine.session.options.seed = *rc::gen::arbitrary<std::uint64_t>();
  std::vector<std::uint64_t> wide(32, 0);
  Words up(32, 0), votes(32, 0);
  const bool up_stays_inside = [&] {
    for (const int lane : lanes) {
      if (lane >= delta && !(mask >> (lane - delta) & 1u)) return false;
    }
    return true;
  }();
  machine.run(1, 32, 0, [&] {
    const int lane = lane_index();
    if (!(mask >> lane & 1u)) return;
    wide[lane] = shuffle(mask, values[lane], source[lane]);
    votes[lane] = ballot(mask, values[lane] % 3 == 0);
    if (up_stays_inside) up[lane] = shuffle_up(mask, static_cast<std::uint32_t>(lane), delta);
  });
  std::uint32_t expected_votes = 0;
  for (const int lane : lanes) {
    expected_votes |= static_cast<std::uint32_t>(values[lane] % 3 == 0) << lane;
  }
  for (const int lane : lanes) {
    RC_ASSERT(wide[lane] == values[source[lane]]);
    RC_ASSERT(votes[lane] == expected_votes);
    if (up_stays_inside) {
      RC_ASSERT(up[lane] == static_cast<std::uint32_t>(lane < delta ? lane : lane - delta));
    }
  }
}

// Any partition of a warp into groups that work at the same time, each with its own mask.
RC_GTEST_PROP(Warp, DisjointMasksDoNotDisturbEachOther, ()) {
  const auto group = *rc::gen::container<std::vector<int>>(32, rc::gen::inRange(0, 4));
  std::uint32_t masks[4] = {};
  for (int lane = 0; lane < 32; ++lane) masks[group[lane]] |= 1u << lane;
  Machine machine;
  machine.session.options.order = *rc::gen::elementOf(all_orders);
  machine.session.options.seed = *rc::gen::arbitrary<std::uint64_t>();
  std::vector<int> sums(32, 0);
  machine.run(1, 32, 0, [&] {
    const int lane = lane_index();
    const std::uint32_t mask = masks[group[lane]];
    const std::vector<int> members = lanes_of(mask);
    for (const int member : members) sums[lane] += shuffle(mask, lane, member);
    sync_warp(mask);
  });
  for (int lane = 0; lane < 32; ++lane) {
    const std::vector<int> members = lanes_of(masks[group[lane]]);
    RC_ASSERT(sums[lane] == std::accumulate(members.begin(), members.end(), 0));
  }
}

TEST(Warp, ButterflySumsEveryWarpInEveryOrder) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    std::vector<int> sums(96);
    machine.run(1, 96, 0, [&] {
      int sum = thread_index();
      for (int distance = 16; distance > 0; distance /= 2) {
        sum += shuffle_xor(full_mask, sum, distance);
      }
      sums[thread_index()] = sum;
    });
    for (int t = 0; t < 96; ++t) EXPECT_EQ(sums[t], t / 32 * 1024 + 31 * 16);
  }
}

TEST(Warp, SyncWarpLetsLanesExchangeThroughSharedMemory) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    std::vector<int> got(64);
    machine.run(1, 64, 64 * 4, [&] {
      auto* shared = reinterpret_cast<int*>(dynamic_shared()) + warp_index() * 32;
      store_shared(shared + lane_index(), thread_index());
      sync_warp();
      got[thread_index()] = load_shared(shared + (31 - lane_index()));
    });
    for (int t = 0; t < 64; ++t) EXPECT_EQ(got[t], t / 32 * 32 + 31 - t % 32);
  }
}

// A warp's kernel that must be blamed with `kind` in every order, at the line the kernel notes.
void expect_blame(const std::string& kind, const std::string& text,
                  const std::function<void(unsigned& line)>& kernel) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    unsigned line = 0;
    const Blame found = blame([&] { machine.run(1, 32, 0, [&] { kernel(line); }); });
    EXPECT_EQ(found.kind, kind);
    EXPECT_EQ(found.line, line) << found.text;
    EXPECT_NE(found.text.find(text), std::string::npos) << found.text;
  }
}

TEST(Warp, CallerOutsideTheMask) {
  expect_blame("bad_mask", "lane 5 calls ballot with mask 0xffffffdf", [](unsigned& line) {
    if (lane_index() == 5) line = __LINE__, ballot(0xffffffdfu, true);
  });
}

TEST(Warp, MaskNamesALaneThatLeft) {
  expect_blame("bad_mask", "left the kernel", [](unsigned& line) {
    if (lane_index() == 31) return;
    line = __LINE__, shuffle(full_mask, 1, 0);
  });
}

TEST(Warp, LanesDisagreeOnTheMask) {
  expect_blame("bad_mask", "lanes disagree on the mask", [](unsigned& line) {
    line = __LINE__, sync_warp(lane_index() < 16 ? 0xffffffffu : 0xffff0001u);
  });
}

TEST(Warp, ShuffleReadsALaneOutsideTheMask) {
  expect_blame("bad_mask", "shuffles from lane 20", [](unsigned& line) {
    if (lane_index() < 16) line = __LINE__, shuffle(0xffffu, 1, lane_index() == 3 ? 20 : 0);
  });
}

TEST(Warp, LanesInDifferentOperations) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    unsigned even = 0, odd = 0;
    const Blame found = blame([&] {
      machine.run(1, 32, 0, [&] {
        if (lane_index() % 2 == 0) {
          even = __LINE__, ballot(full_mask, true);
        } else {
          odd = __LINE__, sync_warp();
        }
      });
    });
    EXPECT_EQ(found.kind, "divergent_warp");
    EXPECT_TRUE(found.line == even || found.line == odd);
  }
}

TEST(Warp, AGroupMaySyncBeforeItJoinsTheWarp) {
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    int finished = 0;
    machine.run(1, 32, 0, [&] {
      if (lane_index() >= 16) sync_warp(0xffff0000u);
      sync_warp();
      ++finished;
    });
    EXPECT_EQ(finished, 32);
  }
}

}  // namespace
}  // namespace indexpool::sim::simt
