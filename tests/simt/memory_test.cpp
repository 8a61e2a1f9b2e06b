#include "indexpool/model/error.hpp"

#include "machine.hpp"

namespace indexpool::sim::simt {
namespace {

TEST(Memory, BuffersAreAlignedAndPoisoned) {
  Memory memory;
  for (const std::int64_t bytes : {0, 1, 255, 256, 257, 4095, 4096, 4097, 100'000}) {
    const std::byte* buffer = memory.allocate("b", bytes, std::byte{0x5A});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 256, 0u);
    for (std::int64_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer[i], std::byte{0x5A});
  }
  EXPECT_EQ(memory.check_guards(), "");
}

TEST(Memory, SparseBuffersReadAsZerosAndMayExceedTheMachine) {
  Memory memory;
  const std::int64_t bytes = 100'000'000'000;
  std::byte* buffer = memory.allocate("sparse", bytes, std::byte{0x5A}, true);
  EXPECT_EQ(buffer[bytes / 2], std::byte{0});
  buffer[bytes - 1] = std::byte{1};
  EXPECT_EQ(memory.check_guards(), "");
  memory.release(buffer);
}

TEST(Memory, GuardsCatchAStoreThatIsOffByOne) {
  for (const std::int64_t bytes : {1, 1000, 4096, 5000}) {
    Machine machine;
    auto* buffer = machine.empty<char>("victim", bytes);
    machine.empty<char>("bystander", bytes);
    machine.run(1, 32, 0, [&] {
      if (thread_index() == 0) buffer[bytes] = 1;  // a raw store, unseen by the access checks
    });
    EXPECT_EQ(machine.memory.check_guards(), "buffer 'victim' (" + std::to_string(bytes) +
                                                 " bytes) was written 0 bytes past its end");
  }
  Machine machine;
  auto* buffer = machine.empty<char>("victim", 64);
  *(buffer - 1) = 1;
  EXPECT_EQ(machine.memory.check_guards(),
            "buffer 'victim' (64 bytes) was written 1 bytes before its start");
}

TEST(Memory, DamageIsRememberedAfterRelease) {
  Memory memory;
  std::byte* buffer = memory.allocate("gone", 64, std::byte{0});
  buffer[70] = std::byte{1};
  memory.release(buffer);
  EXPECT_EQ(memory.check_guards(), "buffer 'gone' (64 bytes) was written 6 bytes past its end");
}

TEST(Memory, RefusesWhatItCannotDo) {
  Memory memory;
  EXPECT_THROW(memory.allocate("negative", -1, std::byte{0}), ConfigError);
  std::byte* buffer = memory.allocate("b", 64, std::byte{0});
  EXPECT_THROW(memory.release(buffer + 1), InternalError);
  EXPECT_THROW(memory.allocate("beyond", std::int64_t{1} << 60, std::byte{0}, true),
               EnvironmentError);
}

}  // namespace
}  // namespace indexpool::sim::simt
