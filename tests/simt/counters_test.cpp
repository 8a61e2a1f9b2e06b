#include "indexpool/sim/simt/counters.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

// Traffic of one block of `threads` threads, the same in every order.
Traffic counted(int threads, const std::function<void(Machine&, std::byte* in)>& kernel,
                std::int64_t blocks = 1) {
  std::vector<Traffic> all;
  for (const LaneOrder order : all_orders) {
    Machine machine;
    machine.session.options.order = order;
    auto* in = machine.empty<std::byte>("in", 1 << 16);
    machine.run(blocks, threads, 16384, [&] { kernel(machine, in); });
    all.push_back(machine.session.counted);
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
  return all[0];
}

template <class T>
T* at(std::byte* base, std::int64_t index) {
  return reinterpret_cast<T*>(base) + index;
}

struct Expected {
  std::int64_t bytes, sectors;
};

template <class T>
void expect_loads(Expected expected, const std::function<std::int64_t(int lane)>& index) {
  const Traffic traffic = counted(32, [&](Machine&, std::byte* in) {
    const std::int64_t i = index(lane_index());
    if (i >= 0) load_global(at<T>(in, i));
  });
  EXPECT_EQ(traffic.global_load, Bytes(expected.bytes));
  EXPECT_EQ(traffic.load_sectors, expected.sectors);
  Traffic rest = traffic;
  rest.global_load = Bytes(0);
  rest.load_sectors = 0;
  EXPECT_EQ(rest, Traffic{});
}

TEST(Counters, GlobalLoadsByHand) {
  expect_loads<float>({128, 4}, [](int lane) { return lane; });
  expect_loads<float>({128, 5}, [](int lane) { return lane + 1; });
  expect_loads<float>({128, 4}, [](int lane) { return 31 - lane; });
  expect_loads<float>({128, 8}, [](int lane) { return 2 * lane; });
  expect_loads<float>({128, 32}, [](int lane) { return 32 * lane; });
  expect_loads<float>({4, 1}, [](int) { return 5; });
  expect_loads<float>({64, 2}, [](int lane) { return lane < 16 ? lane : -1; });
  expect_loads<float>({64, 4}, [](int lane) { return lane % 2 == 0 ? lane : -1; });
  expect_loads<std::uint8_t>({32, 1}, [](int lane) { return lane; });
  expect_loads<std::uint16_t>({64, 2}, [](int lane) { return lane; });
  expect_loads<double>({256, 8}, [](int lane) { return lane; });
  expect_loads<Vec16>({512, 16}, [](int lane) { return lane; });
  expect_loads<Vec16>({128, 4}, [](int lane) { return lane / 4; });
}

TEST(Counters, StoresAndLoopsAndWarps) {
  const Traffic traffic = counted(96, [](Machine&, std::byte* in) {
    for (int i = 0; i < 10; ++i) store_global(at<int>(in, i * 96 + thread_index()), i);
  });
  EXPECT_EQ(traffic.global_store, Bytes(10 * 96 * 4));
  EXPECT_EQ(traffic.store_sectors, 10 * 12);
  EXPECT_EQ(traffic.global_load, Bytes(0));
}

TEST(Counters, TwoLinesAreTwoInstructions) {
  const Traffic traffic = counted(32, [](Machine&, std::byte* in) {
    if (lane_index() % 2 == 0) {
      load_global(at<int>(in, 0));
    } else {
      load_global(at<int>(in, 0));
    }
  });
  EXPECT_EQ(traffic.global_load, Bytes(8));
  EXPECT_EQ(traffic.load_sectors, 2);
}

TEST(Counters, LanesOnTwoSidesOfABarrierDoNotShareAnInstruction) {
  const auto traffic = [](bool block) {
    return counted(32, [block](Machine&, std::byte* in) {
      for (int turn = 0; turn < 2; ++turn) {
        if (lane_index() == turn) store_global(at<int>(in, turn), 1);
        block ? sync_block() : sync_warp();
      }
    });
  };
  EXPECT_EQ(traffic(true).store_sectors, 2);
  EXPECT_EQ(traffic(false).store_sectors, 2);
  EXPECT_EQ(traffic(true).global_store, Bytes(8));
}

struct SharedCount {
  std::int64_t bytes, wavefronts;
};

template <class T>
void expect_shared(SharedCount expected, const std::function<int(int lane)>& index) {
  const Traffic load = counted(
      32, [&](Machine&, std::byte*) { load_shared(at<T>(dynamic_shared(), index(lane_index()))); });
  const Traffic store = counted(32, [&](Machine&, std::byte*) {
    store_shared(at<T>(dynamic_shared(), index(lane_index())), T{});
  });
  EXPECT_EQ(load.shared_load, Bytes(expected.bytes));
  EXPECT_EQ(load.shared_wavefronts, expected.wavefronts);
  EXPECT_EQ(store.shared_store, Bytes(expected.bytes));
  EXPECT_EQ(store.shared_wavefronts, expected.wavefronts);
  EXPECT_EQ(load.shared_store + store.shared_load + load.global_load, Bytes(0));
}

TEST(Counters, BankConflictsByHand) {
  expect_shared<float>({128, 1}, [](int lane) { return lane; });
  expect_shared<float>({128, 1}, [](int lane) { return lane + 7; });
  expect_shared<float>({128, 2}, [](int lane) { return 2 * lane; });
  expect_shared<float>({128, 32}, [](int lane) { return 32 * lane; });
  expect_shared<float>({128, 1}, [](int lane) { return 33 * lane; });
  expect_shared<float>({4, 1}, [](int) { return 9; });
  expect_shared<float>({8, 2}, [](int lane) { return lane % 2 * 32; });
  expect_shared<std::uint8_t>({32, 1}, [](int lane) { return lane; });
  expect_shared<std::uint8_t>({16, 4}, [](int lane) { return lane % 4 + lane / 8 * 128; });
  expect_shared<std::uint16_t>({64, 1}, [](int lane) { return lane; });
  expect_shared<double>({256, 2}, [](int lane) { return lane; });
  expect_shared<double>({256, 4}, [](int lane) { return 2 * lane; });
  expect_shared<double>({8, 2}, [](int) { return 0; });
  expect_shared<Vec16>({512, 4}, [](int lane) { return lane; });
  expect_shared<Vec16>({512, 32}, [](int lane) { return 8 * lane; });
  expect_shared<Vec16>({512, 4}, [](int lane) { return 8 * lane + lane % 8; });
}

TEST(Counters, LoadMatrixIsASharedLoadOf512Bytes) {
  const auto rows = [](int row_bytes, bool swizzled) {
    return counted(32, [=](Machine&, std::byte*) {
      std::uint32_t out[4];
      const int chunk = swizzled ? lane_index() % 8 : 0;
      load_matrix_x4(out, dynamic_shared() + lane_index() * row_bytes + chunk * 16);
    });
  };
  EXPECT_EQ(rows(16, false).shared_load, Bytes(512));
  EXPECT_EQ(rows(16, false).shared_wavefronts, 4);
  EXPECT_EQ(rows(256, false).shared_wavefronts, 32);
  EXPECT_EQ(rows(256, true).shared_wavefronts, 4);
  EXPECT_EQ(rows(144, false).shared_wavefronts, 4);
}

TEST(Counters, AsynchronousCopyIsALoadAndASharedStore) {
  const Traffic traffic = counted(64, [](Machine&, std::byte* in) {
    async_copy_16(at<Vec16>(dynamic_shared(), thread_index()), at<Vec16>(in, thread_index()),
                  thread_index() < 48);
    async_commit();
    async_wait<0>();
  });
  EXPECT_EQ(traffic.global_load, Bytes(48 * 16));
  EXPECT_EQ(traffic.load_sectors, 24);
  EXPECT_EQ(traffic.shared_store, Bytes(64 * 16));
  EXPECT_EQ(traffic.shared_wavefronts, 8);
}

TEST(Counters, AtomicIsASharedStore) {
  const Traffic traffic = counted(32, [](Machine&, std::byte*) {
    atomic_add_shared(at<std::int32_t>(dynamic_shared(), lane_index() / 8), 1);
  });
  EXPECT_EQ(traffic.shared_store, Bytes(16));
  EXPECT_EQ(traffic.shared_load, Bytes(0));
  EXPECT_EQ(traffic.shared_wavefronts, 1);
}

TEST(Counters, CollectivesPerWarpAndBarriersPerBlock) {
  const Traffic traffic = counted(
      64,
      [](Machine&, std::byte*) {
        sync_block();
        shuffle_xor(full_mask, 1, 1);
        shuffle(full_mask, 1.0, 0);  // 8 bytes: two
        ballot(full_mask, true);
        if (lane_index() < 8) shuffle_up(0xffu, 1, 1);
        sync_warp();
        float d[4] = {};
        const std::uint32_t a[4] = {}, b[2] = {};
        mma_m16n8k16_bf16(d, a, b);
        mma_m16n8k32_e4m3(d, a, b);
        sync_block();
      },
      3);
  EXPECT_EQ(traffic.block_barriers, 2 * 3);
  EXPECT_EQ(traffic.shuffles, (1 + 2 + 1 + 1) * 2 * 3);
  EXPECT_EQ(traffic.matrix_ops, 2 * 2 * 3);
}

TEST(Counters, SumOverLaunchesAndOnlyWhenAsked) {
  Machine machine;
  auto* in = machine.empty<float>("in", 32);
  const auto kernel = [&] { load_global(in + thread_index()); };
  machine.run(2, 32, 0, kernel);
  machine.run(1, 32, 0, kernel);
  EXPECT_EQ(machine.session.counted.global_load, Bytes(3 * 128));
  machine.session.options.count = false;
  machine.run(1, 32, 0, kernel);
  EXPECT_EQ(machine.session.counted.global_load, Bytes(3 * 128));
}

// --- against sets ---
WarpAccess any_access(int bytes) {
  WarpAccess access{};
  access.lanes = *rc::gen::suchThat<std::uint32_t>([](std::uint32_t m) { return m != 0; });
  const int span = *rc::gen::element(4, 40, 300, 5000);
  for (std::uint64_t& address : access.address) {
    address =
        static_cast<std::uint64_t>(bytes) * *rc::gen::inRange<std::uint64_t>(1000, 1000 + span);
  }
  return access;
}

RC_GTEST_PROP(Counters, GlobalCostIsTheSizeOfSets, ()) {
  const int bytes = *rc::gen::element(1, 2, 4, 8, 16);
  const WarpAccess access = any_access(bytes);
  std::set<std::uint64_t> touched, sectors;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < bytes && (access.lanes >> lane & 1u); ++i) {
      touched.insert(access.address[lane] + i);
      sectors.insert((access.address[lane] + i) / 32);
    }
  }
  const AccessCost cost = global_cost(access, bytes);
  RC_ASSERT(cost.bytes == static_cast<std::int64_t>(touched.size()));
  RC_ASSERT(cost.sectors == static_cast<std::int64_t>(sectors.size()));
}

RC_GTEST_PROP(Counters, WavefrontsAreTheFullestBankOfEachGroup, ()) {
  const int bytes = *rc::gen::element(1, 2, 4, 8, 16);
  const WarpAccess access = any_access(bytes);
  const int lanes_together = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  std::set<std::uint64_t> touched;
  std::size_t wavefronts = 0;
  for (int first = 0; first < 32; first += lanes_together) {
    std::map<std::uint64_t, std::set<std::uint64_t>> words_of_bank;
    for (int lane = first; lane < first + lanes_together; ++lane) {
      for (int i = 0; i < bytes && (access.lanes >> lane & 1u); ++i) {
        const std::uint64_t byte = access.address[lane] + i;
        touched.insert(byte);
        words_of_bank[byte / 4 % 32].insert(byte / 4);
      }
    }
    std::size_t fullest = 0;
    for (const auto& [bank, words] : words_of_bank) fullest = std::max(fullest, words.size());
    wavefronts += fullest;
  }
  const AccessCost cost = shared_cost(access, bytes);
  RC_ASSERT(cost.bytes == static_cast<std::int64_t>(touched.size()));
  RC_ASSERT(cost.wavefronts == static_cast<std::int64_t>(wavefronts));
}

}  // namespace
}  // namespace indexpool::sim::simt
