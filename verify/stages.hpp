// Each operation as a function from host bytes to host bytes, run on a target. Nothing is shared
// between calls, so that an operation can be repeated, reordered and judged alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/verify/cache_layout.hpp"
#include "indexpool/verify/timeline.hpp"

namespace indexpool::verify {

// Finds the kernel for some arguments; throws ConfigError when none takes them.
using Lookup = std::function<const kernels::Kernel&(const kernels::OpArgs&)>;

// What the launches of one operation said and did.
struct OpRun {
  std::string implementation;
  Traffic declared, counted;
  Work work;  // of the last launch, its traffic summed over all
  std::int64_t launches = 0;
  kernels::Accumulation accumulation = kernels::Accumulation::f32_fma;
  bool has_counts = false;                 // the target counts
  std::optional<Measurement> measurement;  // of the first launch, when asked for
};

// Where and how a stage runs. `measure` times the launches that can be repeated.
struct StageContext {
  kernels::Target& target;
  Lookup lookup;
  bool measure = false;
  kernels::Planner planner = {};
};

// Launches `args` and adds to `run`.
void launch(StageContext& context, const kernels::OpArgs& args, OpRun& run);

// --- pool and append: the whole timeline through the cache ---
struct CacheInputs {
  const IndexerInputs& inputs;
  const Timeline& timeline;
  const CacheLayout& layout;
  Tensor keys, gate_scores;  // staged
};
struct CacheOutput {
  std::vector<std::byte> cache, tail;
  // By pool of all sequences back to back, from the launch that closed it for good.
  std::vector<kernels::PoolChecksum> checksums;
  std::vector<char> by_append;  // 1 where the append kernel closed the pool
  std::vector<char> written;    // by byte of the cache: 1 where some job of the plan writes
  OpRun pool, append;
  std::string guards;  // empty when intact
};
CacheOutput run_cache(StageContext& context, const CacheInputs& cache);

// --- quantize_query ---
struct QueryOutput {
  std::vector<std::byte> codes;
  std::vector<float> scales;
  OpRun run;
  std::string guards;
};
QueryOutput run_quantize_query(StageContext& context, const IndexerInputs& inputs);

// --- logits: every token queries, against the finished cache ---
struct LogitsInputs {
  const IndexerInputs& inputs;
  const CacheLayout& layout;
  const std::vector<std::byte>& cache;
  const std::vector<std::byte>& queries;   // codes, or the storage dtype
  const std::vector<float>& query_scales;  // empty when not quantised
  std::int64_t stride = 0;                 // columns of a row of logits
};
struct LogitsOutput {
  std::vector<float> logits;  // [N, stride]
  OpRun run;
  std::string guards;
};
LogitsOutput run_logits(StageContext& context, const LogitsInputs& logits);

// --- topk ---
struct TopkInputs {
  const IndexerInputs& inputs;
  const std::vector<float>& logits;
  std::int64_t stride = 0;
};
struct TopkOutput {
  std::vector<std::int32_t> selection;  // [N, selection_width]
  OpRun run;
  std::string guards;
};
TopkOutput run_topk(StageContext& context, const TopkInputs& topk);

// One row per token of the batch, in order.
std::vector<kernels::QueryRow> query_rows(const IndexerInputs& inputs);
// Columns of the logits: the most pools any row sees, in multiples of 4, a seeded few more.
std::int64_t logits_stride(const IndexerInputs& inputs, std::uint64_t seed);
// One past the last pool, by sequence, of all sequences back to back; starts with 0.
std::vector<std::int64_t> first_pools(const IndexerInputs& inputs);

}  // namespace indexpool::verify
