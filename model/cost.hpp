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
  std::string name;  // "launch", "serial", "hbm", "l2", "shared", "matrix", "f32", "issue",
                     // "integer", "special", "latency", "fill"
  Seconds time, low, high;
  std::string formula;  // "13.2 MB / 1776 GB/s"
  std::string source;   // of its constants

  bool operator==(const CostTerm&) const = default;
};

struct Prediction {
  std::string device;
  Seconds time, low, high;
  std::string bound_by;  // name of the dominating term
  Bytes hbm_bytes;
  Bytes memory;  // resident data this operation needs
  std::vector<CostTerm> terms;
  bool operator==(const Prediction&) const;
};

struct CostOptions {
  bool warm_l2 = false;  // inputs may still be in L2 from the operation before
  bool graph_launch = false;
};

// t = launch + serial + fill + p-norm over (hbm, l2, SMs), and the SMs' time = sum over waves of
// blocks of the p-norm over (shared, matrix, f32, issue, integer, special, latency): a wave is as
// many blocks as the SMs hold, the last may be partial. Each term is a function below. The interval
// comes from the constants' own: low takes every one at its faster end and resources that overlap
// perfectly, high the slower ends and resources that overlap badly (p = 2). `memory` is what the
// work touches, unique_read + unique_write; a caller that knows the whole context replaces it by
// resident_memory(...).total. Throws ConfigError when the device has no rate for the work's
// matrix_dtype.
Prediction predict(const Work& work, const DeviceSpec& device, const CostOptions& options = {});

// The terms. time, low and high of each are 0 when the work has nothing of its kind.
CostTerm launch_term(const Work& work, const DeviceSpec& device, const CostOptions& options);
CostTerm serial_term(const Work& work);
CostTerm hbm_term(const Work& work, const DeviceSpec& device, const CostOptions& options);
CostTerm l2_term(const Work& work, const DeviceSpec& device);
// The first wave's loads, which its blocks wait for before they compute.
CostTerm fill_term(const Work& work, const DeviceSpec& device, const CostOptions& options);
CostTerm shared_term(const Work& work, const DeviceSpec& device);
CostTerm matrix_term(const Work& work, const DeviceSpec& device);
CostTerm f32_term(const Work& work, const DeviceSpec& device);
CostTerm issue_term(const Work& work, const DeviceSpec& device);
CostTerm integer_term(const Work& work, const DeviceSpec& device);
CostTerm special_term(const Work& work, const DeviceSpec& device);
// The steps of a block that wait for each other, once a wave.
CostTerm latency_term(const Work& work, const DeviceSpec& device, const CostOptions& options);

// (sum t^order)^(1/order): at least the largest, at most the sum for order >= 1.
Seconds smooth_max(const std::vector<Seconds>& times, double order);
// What reaches HBM: each byte once; with a warm L2 the resident share of the footprint does not.
Bytes hbm_bytes(const Work& work, const DeviceSpec& device, const CostOptions& options);

double l2_resident_share(Bytes footprint, const DeviceSpec& device);  // logistic, in [0, 1]
// By read/write mix: harmonic between pure read, 1:1 copy and pure write.
BytesPerSecond hbm_rate(Bytes read, Bytes write, const DeviceSpec& device);
// Little's law with the loaded latency, as a soft minimum with `peak`.
BytesPerSecond rate_in_flight(BytesPerSecond peak, Bytes in_flight, const DeviceSpec& device);
// Share of the slots in use, averaged over the waves: the last one may be partial.
double wave_efficiency(std::int64_t blocks, std::int64_t resident_blocks);

// Indexer cache of all layers at `tokens`: pooled entries, in whole pools, without page rounding.
Bytes indexer_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);
// The same if every token kept its key (no pooling).
Bytes unpooled_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);
// With pages allocated whole, for one sequence.
Bytes paged_cache_bytes(const ArchitectureConfig& architecture, std::int64_t tokens);

// What the indexer keeps in device memory, all layers, item by item.
struct MemoryItem {
  std::string name;  // "pools", "tail ring", "block table", "logits", "selection"
  Bytes bytes;
  std::string formula;  // "11 layers x 4096 pages x 8448 B"
};
struct MemoryPlan {
  std::vector<MemoryItem> items;
  Bytes total;
};
// A context: `sequences` of `tokens` each, and the query rows that are scored at once (one layer at
// a time: its logits and selection are workspace that layers share). query_rows 0: one decode step,
// 1 + drafts rows of each sequence.
struct ContextSize {
  std::int64_t tokens = 0, sequences = 1;
  std::int64_t drafts = 0;
  std::int64_t query_rows = 0;
};
MemoryPlan resident_memory(const ArchitectureConfig& architecture, const ContextSize& context);

// Work of one operation of one layer at `tokens` of context on the architecture's geometry:
// prefill pools all tokens; append, quantize_query, logits and topk are one decode step of `batch`
// queries. Uses the kernels' own declared shapes, passed in by the caller as `Work`.
struct OperationCost {
  std::string op;
  Work work;
  Prediction prediction;
};

}  // namespace indexpool
