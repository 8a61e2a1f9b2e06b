// What making weights and pools takes on a device: the declared work of their kernels, put through
// the cost model, as launches of a CUDA graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/cost_numbers.hpp"

namespace indexpool::verify::strategies {

// Launches that pool `groups` groups of `vectors` vectors, bf16, the weights' own first (without
// them when `with_weights` is false). `tokens` and `hidden` are those of a gate's hidden states.
struct PoolingShape {
  std::string policy;
  std::int64_t groups = 0, vectors = 4, head_dim = 32, heads = 1, tokens = 0, hidden = 0;
  bool with_weights = true;
  auto operator<=>(const PoolingShape&) const = default;
};
std::vector<Work> work_of(const PoolingShape& shape);

// Remembers what it predicted.
class PoolingLatency {
 public:
  explicit PoolingLatency(DeviceSpec device) : device_(std::move(device)) {}
  const CostNumbers& of(const PoolingShape& shape);

 private:
  DeviceSpec device_;
  std::map<PoolingShape, CostNumbers> known_;
};

}  // namespace indexpool::verify::strategies
