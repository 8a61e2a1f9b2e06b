// Shared memory of the block that runs, with guards that a stray raw pointer would damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "indexpool/sim/simt/sanitize.hpp"

namespace indexpool::sim::simt {

class SharedMemory {
 public:
  // What a kernel reads before it writes: NaN as bf16, f16, f32 and e4m3, since zero times anything
  // else would go unseen, and a large positive number as an integer.
  static constexpr std::byte poison[2] = {std::byte{0xff}, std::byte{0x7f}};
  static constexpr std::byte canary{0xC7};

  SharedMemory() = default;
  ~SharedMemory() { resize(0); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void resize(std::int64_t bytes) {
    if (allocation_) {
      allow_access(allocation_, guard + static_cast<std::size_t>(bytes_) + guard);
      ::operator delete (allocation_, std::align_val_t{alignment});
      allocation_ = nullptr;
    }
    bytes_ = bytes;
    if (bytes == 0) return;
    const std::size_t size = static_cast<std::size_t>(bytes);
    allocation_ =
        static_cast<std::byte*>(::operator new (guard + size + guard, std::align_val_t{alignment}));
    std::memset(allocation_, static_cast<int>(canary), guard + size + guard);
    forbid_access(allocation_, guard);
    forbid_access(begin() + bytes, guard);
  }

  std::byte* begin() const { return allocation_ ? allocation_ + guard : nullptr; }
  std::int64_t bytes() const { return bytes_; }
  static void fill_with_poison(std::byte* to, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) to[i] = poison[i % 2];
  }
  void poison_all() { fill_with_poison(begin(), bytes_); }
  bool contains(std::uintptr_t address, int size) const {
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(begin());
    return offset < static_cast<std::uintptr_t>(bytes_) &&
           offset + static_cast<std::uintptr_t>(size) <= static_cast<std::uintptr_t>(bytes_);
  }
  // The address sanitizer reports a write to a guard where it happens; without it they are
  // compared.
  bool guards_intact() const {
#if !defined(INDEXPOOL_ASAN)
    if (!allocation_) return true;
    for (std::size_t i = 0; i < guard; ++i) {
      if (allocation_[i] != canary || begin()[bytes_ + static_cast<std::int64_t>(i)] != canary) {
        return false;
      }
    }
#endif
    return true;
  }

 private:
  static constexpr std::size_t alignment = 1024;
  static constexpr std::size_t guard = 1024;
  std::byte* allocation_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace indexpool::sim::simt
