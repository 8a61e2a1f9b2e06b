// Times of operations, and what they add up to. Internal to the layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/step/predict.hpp"

namespace indexpool::step {

// One run of an operation, and how long it keeps what two streams share.
struct OperationTime {
  Seconds time, low, high;
  Seconds hbm, hbm_low, matrix, matrix_low;

  OperationTime& operator+=(const OperationTime& other);
  OperationTime times(std::int64_t count) const;
};

// A device with the implementations that were measured on it.
struct Machine {
  DeviceSpec device;
  CostOptions options;
  std::optional<ImplementationSet> gemm, attention;

  Machine(DeviceSpec spec, const StepOptions& step_options);
};

// A measured implementation and the shape it is asked for; nothing where the cost model predicts.
struct Measured {
  const ImplementationSet* set = nullptr;
  const Implementation* implementation = nullptr;
  KernelShape shape;
  explicit operator bool() const { return implementation != nullptr; }
};
// Measured in graphs: what a launch in a stream takes longer; nothing in a graph.
CostNumbers launch_beyond_graph(const Machine& machine);
Measured measured_for(const Shape& shape, const Size& size, const Machine& machine);

// One run of `operation`. `declared`: the indexer's kernels at this size. How long it keeps what
// two streams share is 0 where nothing runs beside it.
OperationTime time_of(const Operation& operation, const Size& size, const Machine& machine,
                      bool two_streams, std::span<const Declared> declared);

// The sum over a plan: `times` has an entry for each operation. Two lanes of a section run beside
// each other: no faster than either, nor than what both ask of HBM and matrix units together; at
// the slowest one after the other.
struct StepSum {
  CostNumbers numbers;
  Seconds hidden;  // of `numbers.time`: what running beside each other saves
};
StepSum sum_of(const Plan& plan, std::span<const OperationTime> times, bool two_streams);

}  // namespace indexpool::step
