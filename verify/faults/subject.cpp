#include "indexpool/verify/faults/subject.hpp"

#include <algorithm>
#include <cmath>

#include "indexpool/kernels/plan.hpp"
#include "indexpool/verify/execute.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool any_nonzero(const PageShape& shape, Bytes codes) {
  for (std::int64_t c = 0; c < shape.head_dim; ++c) {
    if (load_element(shape.mode.cache, codes.data(), c) != 0) return true;
  }
  return false;
}

std::unique_ptr<kernels::Target> quiet_executor() {
  sim::simt::Options executor;
  executor.count = false;
  return kernels::make_simt_target(executor);
}

}  // namespace

PageShape page_shape(const std::string& mode) {
  return {numeric_mode(mode), head_dim, states_per_page};
}

IndexerInputs draw_inputs(const std::string& mode, const std::string& fill,
                          const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
  Problem problem;
  problem.indexer = {1, head_dim, 16, index_kpool, true};
  problem.mode = mode;
  problem.fill = fill;
  problem.lengths = lengths;
  problem.states_per_page = states_per_page;
  problem.seed = seed;
  return make_case(problem).inputs;
}

CacheRun run_kernels(const IndexerInputs& inputs, const Schedule& schedule, std::uint64_t seed) {
  constexpr std::uint64_t rejected_keys = 500, rejected_gates = 501;
  const Timeline timeline = plan_timeline(inputs, schedule, 0, seed);
  CacheRun run;
  // A seed whose pages have padding between them (cache_layout.hpp).
  run.layout =
      lay_out_cache(inputs, timeline.positions, states_per_page,
                    kernels::ring_size(inputs.config.index_kpool, schedule.drafts), 3 * seed + 1);
  const CacheInputs cache{inputs, timeline, run.layout,
                          stage_rows(inputs.keys, timeline, seed, rejected_keys),
                          stage_rows(inputs.gate_scores, timeline, seed, rejected_gates)};
  const auto target = quiet_executor();
  StageContext context{*target, make_lookup({}), false};
  run.output = run_cache(context, cache);
  return run;
}

QueryOutput run_queries(const IndexerInputs& inputs) {
  if (!inputs.mode.quantised()) {
    const auto raw = inputs.queries.raw();
    return {{raw.begin(), raw.end()}, {}, {}, {}};
  }
  const auto target = quiet_executor();
  StageContext context{*target, make_lookup({}), false};
  return run_quantize_query(context, inputs);
}

std::vector<StoredPage> pages_of(const IndexerInputs& inputs, const CacheRun& run,
                                 const PageShape& shape) {
  const std::vector<std::int64_t> first = first_pools(inputs);
  std::vector<StoredPage> pages;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const std::int64_t pools = first[s + 1] - first[s];
    for (std::int64_t pool = 0; pool < pools; pool += shape.states) {
      const auto from =
          run.output.cache.begin() + run.layout.code_offset(static_cast<std::int64_t>(s), pool);
      const auto sums = run.output.checksums.begin() + first[s] + pool;
      StoredPage page;
      page.bytes.assign(from, from + run.layout.page_stride);
      page.checksums.assign(sums, sums + std::min(shape.states, pools - pool));
      for (const kernels::PoolChecksum& sum : page.checksums) {
        append(page.seal, shape, page.bytes, sum);
      }
      pages.push_back(std::move(page));
    }
  }
  return pages;
}

bool codes_differ(const PageShape& shape, Bytes before, Bytes after) {
  if (std::ranges::equal(before, after)) return false;
  const auto count = static_cast<std::int64_t>(before.size()) / info(shape.mode.cache).bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!same_number(load_element(shape.mode.cache, before.data(), i),
                     load_element(shape.mode.cache, after.data(), i))) {
      return true;
    }
  }
  return false;
}

bool state_differs(const PageShape& shape, Bytes page_before, Bytes page_after,
                   std::int64_t state) {
  const Bytes codes = codes_of(shape, page_before, state);
  if (codes_differ(shape, codes, codes_of(shape, page_after, state))) return true;
  if (!shape.quantised()) return false;
  const double before = load_element(DType::f32, scale_of(shape, page_before, state).data(), 0);
  const double after = load_element(DType::f32, scale_of(shape, page_after, state).data(), 0);
  if (same_number(before, after)) return false;
  // Zeros stay zeros under any finite scale.
  return !std::isfinite(after) || any_nonzero(shape, codes);
}

}  // namespace indexpool::verify::faults
