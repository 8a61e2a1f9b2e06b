// What the executor's tests share: memory with typed buffers, and a check of who was blamed.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/session.hpp"

namespace indexpool::sim::simt {

struct Machine {
  Memory memory;
  Session session{memory, {}, {}};

  template <class T>
  T* filled(const std::string& name, const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    std::byte* buffer =
        memory.allocate(name, static_cast<std::int64_t>(bytes), std::byte{0x7f}, false);
    std::memcpy(buffer, values.data(), bytes);
    return reinterpret_cast<T*>(buffer);
  }
  template <class T>
  T* empty(const std::string& name, std::int64_t count) {
    return reinterpret_cast<T*>(
        memory.allocate(name, count * static_cast<std::int64_t>(sizeof(T)), std::byte{0x7f}));
  }
  void run(std::int64_t blocks, int threads, std::int64_t shared_bytes,
           const std::function<void()>& kernel) {
    launch(session, blocks, threads, shared_bytes, kernel);
  }
};

template <class T>
std::vector<T> copy_of(const T* from, std::size_t count) {
  return std::vector<T>(from, from + count);
}

struct Blame {
  std::string kind, text;
  unsigned line = 0;
};

// The ExecutorError that `body` ends in; a kind of "none" when it ends without.
inline Blame blame(const std::function<void()>& body) {
  try {
    body();
  } catch (const ExecutorError& error) {
    return {error.kind, error.what(), static_cast<unsigned>(error.where.line)};
  }
  return {"none", "", 0};
}

inline const std::vector<LaneOrder> all_orders = {LaneOrder::forward, LaneOrder::reverse,
                                                  LaneOrder::random};

}  // namespace indexpool::sim::simt
