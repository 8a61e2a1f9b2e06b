// What a kernel moves and computes: declared by the kernel, counted by the executor, measured on a
// device. The three must agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "indexpool/model/units.hpp"

namespace indexpool {

// Counts of one launch. "Bytes" of a warp instruction are the distinct bytes its lanes touch;
// "sectors" the distinct 32-byte sectors.
struct Traffic {
  Bytes global_load, global_store;
  std::int64_t load_sectors = 0, store_sectors = 0;
  Bytes shared_load, shared_store;     // distinct bytes per warp instruction
  std::int64_t shared_wavefronts = 0;  // passes over the 32 banks, conflicts included
  std::int64_t matrix_ops = 0;         // mma instructions of a warp
  std::int64_t block_barriers = 0;     // barriers times blocks
  std::int64_t shuffles = 0;           // shuffle and vote instructions of a warp

  bool operator==(const Traffic&) const = default;
  Traffic& operator+=(const Traffic& other);
};

// Warp instructions by the pipe that limits them.
struct Instructions {
  double issued = 0;   // all of them
  double integer = 0;  // integer, logic, compare and select: half as many lanes as f32
  double special = 0;  // conversions, reciprocals, bit counts: an eighth

  bool operator==(const Instructions&) const = default;
  Instructions& operator+=(const Instructions& other) {
    issued += other.issued;
    integer += other.integer;
    special += other.special;
    return *this;
  }
  friend Instructions operator+(Instructions a, const Instructions& b) { return a += b; }
  friend Instructions operator*(double times, const Instructions& one) {
    return {times * one.issued, times * one.integer, times * one.special};
  }
};

// Steps of a block that wait for each other, from its first instruction to its last, whatever runs
// beside it: how often each kind of latency passes.
struct Chain {
  double first_loads = 0;  // of bytes that nobody has read yet
  double loads = 0;        // of bytes that the L2 holds, other blocks having read them
  double shared = 0, atomics = 0, shuffles = 0, barriers = 0;
  double matrix = 0;        // mma on the accumulator of the one before
  double arithmetic = 0;    // other instructions that wait for the one before
  double instructions = 0;  // of its longest warp
};

// What a launch asks of the device, for the cost model.
struct Work {
  Traffic traffic;                  // requested, as declared
  Bytes unique_read, unique_write;  // compulsory: each byte once (what reaches HBM when cold)
  Flop matrix_flop;                 // multiply and add count as two
  std::string matrix_dtype;         // key of DeviceSpec::matrix_flop_per_s; empty: none
  Flop f32_flop;
  std::int64_t blocks = 0, threads_per_block = 0;
  std::int64_t blocks_per_sm = 0;  // resident, from registers and shared memory
  std::int64_t idle_blocks = 0;    // of `blocks`: those that return at once
  Instructions instructions;       // of all warps together; 0: not declared
  Chain chain;
  Bytes in_flight_per_block;  // bytes of loads a block keeps in flight
  // Bytes that a block reads again after `reuse_per_block` others of its own: from the L2, as long
  // as what all resident blocks read in between fits there.
  Bytes reread, reuse_per_block;
  std::int64_t launches = 1;
  Seconds serial_latency;  // dependent steps that no parallelism hides
};

}  // namespace indexpool
