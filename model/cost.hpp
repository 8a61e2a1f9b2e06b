// The analytic cost model: from Work and a device to a time with an interval, term by term.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool {

// One bound of the roofline: what it is, how long it alone would take, the constants it used.
struct CostTerm {
  std::string name;      // "hbm", "l2", "matrix", "f32", "shared", "launch", "serial"
  Seconds time, low, high;
  std::string formula;   // "13.2 MB / 1776 GB/s"
  std::string source;    // of its constants

  bool operator==(const CostTerm&) const = default;
};

struct Prediction {
  std::string device;
  Seconds time, low, high;
  std::string bound_by;  // name of the dominating term
  Bytes hbm_bytes;
  Bytes memory;          // resident data this operation needs
  std::vector<CostTerm> terms;
  bool operator==(const Prediction&) const;
};

struct CostOptions {
  bool warm_l2 = false;     // inputs may still be in L2 from the operation before
  bool graph_launch = false;
};

// t = launch + serial + p-norm over (hbm, l2, shared, matrix, f32); each term is a function below.
Prediction predict(const Work& work, const DeviceSpec& device, const CostOptions& options = {});

double l2_resident_share(Bytes footprint, const DeviceSpec& device);  // logistic, in [0, 1]
BytesPerSecond hbm_rate(Bytes read, Bytes write, const DeviceSpec& device);  // by read/write mix
BytesPerSecond rate_in_flight(BytesPerSecond peak, Bytes in_flight, const DeviceSpec& device);
double wave_efficiency(std::int64_t blocks, std::int64_t resident_blocks);  // last, partial wave

// Indexer cache of all layers at `tokens`: pooled entries, in whole pools, without page rounding.
Bytes indexer_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);
// The same if every token kept its key (no pooling).
Bytes unpooled_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);
// With pages allocated whole, for one sequence.
Bytes paged_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);

// Work of one operation of one layer at `tokens` of context on the architecture's geometry:
// prefill pools all tokens; append, quantize_query, logits and topk are one decode step of `batch`
// queries. Uses the kernels' own declared shapes, passed in by the caller as `Work`.
struct OperationCost {
  std::string op;
  Work work;
  Prediction prediction;
};

}  // namespace indexpool
