#include <algorithm>
#include <unordered_map>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify {
namespace {

// Everything of one cache run that lives on the target.
struct Memory {
  TargetBuffer keys, gate_scores, ape, cache, tail;
};

Memory upload_all(kernels::Target& target, const CacheInputs& cache) {
  return {upload(target, "keys", cache.keys), upload(target, "gate_scores", cache.gate_scores),
          upload(target, "ape", cache.inputs.ape),
          TargetBuffer(target, "cache pages", cache.layout.cache_bytes()),
          TargetBuffer(target, "tail ring", cache.layout.tail_bytes())};
}

std::vector<kernels::StepRequest> requests(const std::vector<Part>& parts,
                                           const CacheLayout& layout) {
  std::vector<kernels::StepRequest> step;
  for (const Part& part : parts) {
    step.push_back({part.start, part.offered, part.first_row,
                    layout.tail_block[static_cast<std::size_t>(part.sequence)],
                    layout.table(part.sequence)});
  }
  return step;
}

template <class Args>
void set_common(Args& args, const Memory& memory, const CacheInputs& cache) {
  args.shape = {cache.inputs.config, cache.inputs.mode};
  args.keys = memory.keys.data();
  args.gate_scores = memory.gate_scores.data();
  args.tail = {memory.tail.data(), cache.layout.tail_block_stride,
               static_cast<std::int32_t>(cache.layout.ring)};
}
template <class Args>
void set_cache(Args& args, const Memory& memory, const CacheInputs& cache) {
  args.ape = memory.ape.as<float>();
  args.cache = {memory.cache.data(), cache.layout.page_stride,
                static_cast<std::int32_t>(cache.layout.states_per_page)};
}

// Pools that a part closes: [first, last) within its sequence. `tokens`: offered or kept.
struct Closed {
  std::int64_t first, last;
};
Closed closed_pools(const Part& part, std::int64_t tokens, std::int64_t kpool) {
  return {part.start / kpool, (part.start + tokens) / kpool};
}

// Marks the bytes that the pools closed by `part` occupy.
void mark_written(const Part& part, const CacheInputs& cache, std::vector<char>& written) {
  const CacheLayout& layout = cache.layout;
  const Closed closed = closed_pools(part, part.offered, cache.inputs.config.index_kpool);
  for (std::int64_t pool = closed.first; pool < closed.last; ++pool) {
    const auto code = written.begin() + layout.code_offset(part.sequence, pool);
    std::fill(code, code + layout.code_bytes(), char{1});
    if (!layout.scales) continue;
    const auto scale = written.begin() + layout.scale_offset(part.sequence, pool);
    std::fill(scale, scale + 4, char{1});
  }
}

// Which pool of all sequences lies in which slot, for the pools that `parts` close.
std::unordered_map<std::int64_t, std::int64_t> slots_of(
    const std::vector<Part>& parts, const CacheInputs& cache,
    const std::vector<std::int64_t>& first_pool) {
  std::unordered_map<std::int64_t, std::int64_t> pools;
  const std::int64_t states = cache.layout.states_per_page;
  for (const Part& part : parts) {
    const Closed closed = closed_pools(part, part.offered, cache.inputs.config.index_kpool);
    const auto table = cache.layout.table(part.sequence);
    for (std::int64_t pool = closed.first; pool < closed.last; ++pool) {
      const std::int64_t page = table[static_cast<std::size_t>(pool / states)];
      pools[page * states + pool % states] =
          first_pool[static_cast<std::size_t>(part.sequence)] + pool;
    }
  }
  return pools;
}

void prefill(StageContext& context, const CacheInputs& cache, const std::vector<Part>& parts,
             const Memory& memory, const std::vector<std::int64_t>& first_pool,
             CacheOutput& output) {
  const auto step = requests(parts, cache.layout);
  const kernels::PrefillPlan plan = context.planner.prefill(
      step, cache.inputs.config.index_kpool, cache.layout.states_per_page, cache.layout.ring);
  if (!plan.pools.empty()) {
    const TargetBuffer jobs = upload(context.target, "pool jobs", plan.pools);
    const TargetBuffer sums(
        context.target, "checksums",
        static_cast<std::int64_t>(plan.pools.size() * sizeof(kernels::PoolChecksum)));
    kernels::PoolArgs args;
    set_common(args, memory, cache);
    set_cache(args, memory, cache);
    args.jobs = jobs.as<kernels::PoolJob>();
    args.job_count = static_cast<std::int64_t>(plan.pools.size());
    args.host_jobs = plan.pools.data();
    args.checksums = sums.as<kernels::PoolChecksum>();
    launch(context, args, output.pool);
    const auto values = values_of<kernels::PoolChecksum>(sums.download());
    const auto pool_of_slot = slots_of(parts, cache, first_pool);
    for (std::size_t job = 0; job < plan.pools.size(); ++job) {
      const auto pool = pool_of_slot.find(plan.pools[job].slot);
      if (pool == pool_of_slot.end()) continue;  // a wrong slot shows in the cache
      output.checksums[static_cast<std::size_t>(pool->second)] = values[job];
    }
  }
  if (plan.tails.empty()) return;
  const TargetBuffer jobs = upload(context.target, "tail jobs", plan.tails);
  kernels::SeedTailArgs args;
  set_common(args, memory, cache);
  args.jobs = jobs.as<kernels::TailJob>();
  args.job_count = static_cast<std::int64_t>(plan.tails.size());
  launch(context, args, output.pool);
}

void decode(StageContext& context, const CacheInputs& cache, const std::vector<Part>& parts,
            const Memory& memory, const std::vector<std::int64_t>& first_pool,
            CacheOutput& output) {
  const auto step = requests(parts, cache.layout);
  const kernels::AppendPlan plan =
      context.planner.append(step, cache.inputs.config.index_kpool, cache.layout.states_per_page);
  const TargetBuffer jobs = upload(context.target, "append jobs", plan.jobs);
  const TargetBuffer slots = upload(context.target, "slots", plan.slots);
  const TargetBuffer sums(
      context.target, "checksums",
      static_cast<std::int64_t>(plan.slots.size() * sizeof(kernels::PoolChecksum)));
  kernels::AppendArgs args;
  set_common(args, memory, cache);
  set_cache(args, memory, cache);
  args.jobs = jobs.as<kernels::AppendJob>();
  args.job_count = static_cast<std::int64_t>(plan.jobs.size());
  args.slots = slots.as<std::int64_t>();
  args.checksums = sums.as<kernels::PoolChecksum>();
  args.pools_closed = plan.pools_closed;
  args.tokens = plan.tokens;
  args.host_jobs = plan.jobs.data();
  args.host_slots = plan.slots.data();
  launch(context, args, output.append);
  const auto values = values_of<kernels::PoolChecksum>(sums.download());
  const std::int64_t kpool = cache.inputs.config.index_kpool;
  std::size_t token = 0;  // of the step
  for (const Part& part : parts) {
    for (std::int64_t i = 0; i < part.offered; ++i, ++token) {
      if (i >= part.kept || (part.start + i + 1) % kpool != 0) continue;
      const auto at = static_cast<std::size_t>(first_pool[static_cast<std::size_t>(part.sequence)] +
                                               (part.start + i) / kpool);
      output.checksums[at] = values[token];
      output.by_append[at] = 1;
    }
  }
}

}  // namespace

CacheOutput run_cache(StageContext& context, const CacheInputs& cache) {
  const Memory memory = upload_all(context.target, cache);
  const std::vector<std::int64_t> first_pool = first_pools(cache.inputs);
  CacheOutput output;
  output.checksums.resize(static_cast<std::size_t>(first_pool.back()));
  output.by_append.assign(static_cast<std::size_t>(first_pool.back()), 0);
  output.written.assign(static_cast<std::size_t>(cache.layout.cache_bytes()), 0);
  for (const Round& round : cache.timeline.rounds) {
    for (const Part& part : round.prefill) mark_written(part, cache, output.written);
    for (const Part& part : round.decode) mark_written(part, cache, output.written);
    if (!round.prefill.empty()) {
      prefill(context, cache, round.prefill, memory, first_pool, output);
    }
    if (!round.decode.empty()) decode(context, cache, round.decode, memory, first_pool, output);
  }
  output.cache = memory.cache.download();
  output.tail = memory.tail.download();
  output.guards = context.target.check_guards();
  return output;
}

}  // namespace indexpool::verify
