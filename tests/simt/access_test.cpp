#include <array>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

// One thread of block 2 of 3 makes the access; the text must name all of it.
void expect_blame(Machine& machine, const std::string& kind, const std::string& text,
                  const std::function<void(unsigned& line)>& access) {
  unsigned line = 0;
  const Blame found = blame([&] {
    machine.run(3, 64, 256, [&] {
      if (block_index() == 2 && thread_index() == 33) access(line);
    });
  });
  EXPECT_EQ(found.kind, kind);
  EXPECT_EQ(found.line, line);
  EXPECT_NE(found.text.find(text), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("(block 2, thread 33)"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("access_test.cpp:" + std::to_string(line)), std::string::npos)
      << found.text;
}

TEST(Access, GlobalOutsideEveryBufferIsNamed) {
  Machine machine;
  const int* keys = machine.filled<int>("keys", std::vector<int>(100));
  int* pages = machine.empty<int>("pages", 64);
  expect_blame(machine, "out_of_bounds",
               "global load of 4 bytes at 0 bytes past the end of buffer 'keys' (400 bytes)",
               [&](unsigned& line) { line = __LINE__, load_global(keys + 100); });
  expect_blame(machine, "out_of_bounds",
               "global store of 4 bytes at 4 bytes before buffer 'pages' (256 bytes)",
               [&](unsigned& line) { line = __LINE__, store_global(pages - 1, 1); });
  expect_blame(machine, "out_of_bounds", "at a null pointer plus 8", [&](unsigned& line) {
    line = __LINE__, load_global(static_cast<const int*>(nullptr) + 2);
  });
}

TEST(Access, StraddlingTheEndIsOutside) {
  Machine machine;
  auto* odd = machine.empty<std::byte>("odd", 24);
  expect_blame(machine, "out_of_bounds", "offset 16 of buffer 'odd' (24 bytes)",
               [&](unsigned& line) {
                 line = __LINE__, load_global(reinterpret_cast<const Vec16*>(odd + 16));
               });
}

TEST(Access, ReleasedBufferIsGone) {
  Machine machine;
  int* gone = machine.empty<int>("gone", 64);
  const auto read = [&](unsigned& line) { line = __LINE__, load_global(gone); };
  unsigned line = 0;
  machine.run(1, 32, 0, [&] { read(line); });
  machine.memory.release(reinterpret_cast<std::byte*>(gone));
  expect_blame(machine, "out_of_bounds", "while no buffer is allocated", read);
}

TEST(Access, HostMemoryIsNotGlobal) {
  Machine machine;
  machine.empty<int>("b", 64);
  int host = 0;
  expect_blame(machine, "out_of_bounds", "buffer 'b'",
               [&](unsigned& line) { line = __LINE__, store_global(&host, 1); });
  EXPECT_EQ(host, 0);
}

TEST(Access, MisalignedGlobal) {
  Machine machine;
  auto* bytes = machine.empty<std::byte>("bytes", 64);
  expect_blame(machine, "misaligned",
               "global load of 4 bytes at offset 6 of buffer 'bytes' (64 bytes)",
               [&](unsigned& line) {
                 const void* at = bytes + 6;
                 line = __LINE__, load_global(static_cast<const int*>(at));
               });
  expect_blame(machine, "misaligned", "a multiple of 16", [&](unsigned& line) {
    Vec16 value{};
    line = __LINE__, store_global_bytes(bytes + 8, &value, 16, Where::current());
  });
}

TEST(Access, SharedOutsideTheBlocksAllocation) {
  Machine machine;
  const auto at = [](int offset) { return reinterpret_cast<int*>(dynamic_shared() + offset); };
  expect_blame(machine, "out_of_bounds",
               "shared load of 4 bytes at offset 256 of the block's 256 bytes",
               [&](unsigned& line) { line = __LINE__, load_shared(at(256)); });
  expect_blame(machine, "out_of_bounds", "shared store of 4 bytes at offset -4",
               [&](unsigned& line) { line = __LINE__, store_shared(at(-4), 1); });
  expect_blame(machine, "out_of_bounds", "offset 260",
               [&](unsigned& line) { line = __LINE__, atomic_add_shared(at(260), 1); });
  expect_blame(machine, "misaligned", "shared load of 8 bytes at offset 4", [&](unsigned& line) {
    const void* four = at(4);
    line = __LINE__, load_shared(static_cast<const double*>(four));
  });
}

TEST(Access, RawStoreBeyondSharedMemoryIsFound) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer stops at the store itself";
#endif
  Machine machine;
  const Blame found =
      blame([&] { machine.run(1, 32, 64, [] { dynamic_shared()[64] = std::byte{1}; }); });
  EXPECT_EQ(found.kind, "out_of_bounds");
  EXPECT_NE(found.text.find("raw pointer"), std::string::npos) << found.text;
}

template <class T>
void copy_through_shared(Machine& machine) {
  std::vector<T> values(64);
  for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) {
    reinterpret_cast<unsigned char*>(values.data())[i] = static_cast<unsigned char>(i * 37 + 11);
  }
  const T* in = machine.filled("in", values);
  T* out = machine.empty<T>("out", 64);
  machine.run(1, 64, 64 * sizeof(T), [&] {
    auto* shared = reinterpret_cast<T*>(dynamic_shared());
    const int t = thread_index();
    store_shared(shared + (t ^ 21), load_global(in + (t ^ 21)));
    sync_block();
    store_global(out + t, load_shared(shared + t));
  });
  EXPECT_EQ(std::memcmp(out, in, 64 * sizeof(T)), 0);
}

TEST(Access, EveryWidthMovesItsBytes) {
  Machine machine;
  copy_through_shared<std::uint8_t>(machine);
  copy_through_shared<std::uint16_t>(machine);
  copy_through_shared<float>(machine);
  copy_through_shared<std::int64_t>(machine);
  copy_through_shared<Vec16>(machine);
  EXPECT_EQ(machine.memory.check_guards(), "");
}

TEST(Access, BytesOfAnyWidth) {
  Machine machine;
  std::array<std::uint8_t, 16> values{};
  for (std::size_t i = 0; i < 16; ++i) values[i] = static_cast<std::uint8_t>(i + 1);
  const auto* in = machine.filled<std::uint8_t>("in", {values.begin(), values.end()});
  auto* out = machine.empty<std::uint8_t>("out", 5 * 16);
  machine.run(1, 32, 0, [&] {
    if (thread_index() > 4) return;
    const int width = 1 << thread_index();
    std::array<std::uint8_t, 16> local{};
    load_global_bytes(local.data(), in, width, Where::current());
    store_global_bytes(out + 16 * thread_index(), local.data(), width, Where::current());
  });
  for (int i = 0; i < 5; ++i) {
    for (int byte = 0; byte < 16; ++byte)
      EXPECT_EQ(out[16 * i + byte], byte < 1 << i ? byte + 1 : 0x7f);
  }
}

RC_GTEST_PROP(Access, AtomicAddsAllArriveInAnyOrder, ()) {
  const auto values =
      *rc::gen::container<std::vector<std::int32_t>>(96, rc::gen::arbitrary<std::int32_t>());
  Machine machine;
  machine.session.options.order = *rc::gen::elementOf(all_orders);
  std::uint32_t expected = 0, sum = 0;
  for (const std::int32_t value : values) expected += static_cast<std::uint32_t>(value);
  machine.run(1, 96, 4, [&] {
    auto* total = reinterpret_cast<std::int32_t*>(dynamic_shared());
    if (thread_index() == 0) store_shared(total, 0);
    sync_block();
    atomic_add_shared(total, values[thread_index()]);
    sync_block();
    if (thread_index() == 95) sum = static_cast<std::uint32_t>(load_shared(total));
  });
  RC_ASSERT(sum == expected);
}

}  // namespace
}  // namespace indexpool::sim::simt
