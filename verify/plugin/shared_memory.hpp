// The memory a call shares with its worker: control block and buffers, laid out and filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "indexpool/model/tensor.hpp"
#include "indexpool/verify/plugin/protocol.hpp"

namespace indexpool::verify::plugin {

// A buffer that goes in. `present` is false where the mode has none (a null pointer).
struct Input {
  std::string name;
  std::span<const std::byte> bytes;
  bool present = true;
};

// A buffer that comes out. `ignored` marks elements nobody looks at; empty: there are none.
struct Output {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  bool present = true, optional = false;
  std::vector<char> ignored;

  std::int64_t elements() const { return element_count(shape); }
};

struct Request {
  std::string library;
  Operation operation = Operation::none;
  indexpool_sizes sizes = {};  // without the sequences
  float logit_scale = 1;
  std::int64_t logits_stride = 0;
  std::vector<Input> inputs;    // inputs[0]: the sequences
  std::vector<Output> outputs;  // in the order of the header's struct
};

// Outputs hold this before a call, by call: what keeps its poison in both was not written, and what
// was written is the same in both.
inline constexpr std::byte poison_of_call[call_count] = {std::byte{0xff}, std::byte{0xa5}};
inline constexpr std::byte guard_byte{0x5c};

// Buffers of the first call end at a guard page, those of the second begin at one: a write outside
// by however little meets a page or the guard bytes of the slack, on either side.
class SharedMemory {
 public:
  explicit SharedMemory(const Request& request);  // EnvironmentError when there is no memory
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int descriptor() const { return descriptor_; }
  Control& control() { return *static_cast<Control*>(base_); }
  const Control& control() const { return *static_cast<const Control*>(base_); }
  std::uint64_t bytes() const { return bytes_; }
  std::span<const std::byte> output(int call, std::size_t index) const;
  // The slack before (side 0) and after (side 1) an output.
  std::span<const std::byte> slack(int call, std::size_t index, int side) const;

 private:
  std::span<std::byte> range(std::uint64_t begin, std::uint64_t end) const;
  void fill(const Request& request);

  int descriptor_ = -1;
  void* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace indexpool::verify::plugin
