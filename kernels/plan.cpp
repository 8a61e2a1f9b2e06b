// Which pools a step closes, and what stays in the tail ring.
#include "indexpool/kernels/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::kernels {
namespace {

void check_kpool(std::int64_t index_kpool) {
  if (index_kpool < 1)
    throw ConfigError(fmt::format("index_kpool is {}; a pool has at least 1 token", index_kpool));
}

void check_request(const StepRequest& request, std::size_t index) {
  const auto fail = [&](const char* what, std::int64_t found) {
    throw ConfigError(
        fmt::format("request {} of the step: {} is {}; expected at least 0", index, what, found));
  };
  if (request.start < 0) fail("start", request.start);
  if (request.tokens < 0) fail("tokens", request.tokens);
  if (request.first_row < 0) fail("first_row", request.first_row);
  if (request.tail_block < 0) fail("tail_block", request.tail_block);
  checked_sum(request.start, request.tokens, "positions of a request");
  checked_sum(request.first_row, request.tokens, "rows of a step");
}

void plan_pools(const StepRequest& request, std::int64_t index_kpool, std::int64_t states_per_page,
                std::vector<PoolJob>& jobs) {
  const std::int64_t end = request.start + request.tokens;
  for (std::int64_t pool = request.start / index_kpool; pool < end / index_kpool; ++pool) {
    const std::int64_t first = pool * index_kpool, last = first + index_kpool - 1;
    PoolJob job{};
    job.slot = pool_slot(request.block_table, states_per_page, pool);
    job.last_row = request.first_row + (last - request.start);
    job.first_position = first;
    job.tail_block = request.tail_block;
    job.carried = static_cast<std::int32_t>(std::max<std::int64_t>(0, request.start - first));
    jobs.push_back(job);
  }
}

void plan_tail(const StepRequest& request, std::int64_t ring, std::vector<TailJob>& jobs) {
  for (std::int64_t i = request.tokens - std::min(request.tokens, ring); i < request.tokens; ++i)
    jobs.push_back({request.first_row + i, request.tail_block,
                    static_cast<std::int32_t>((request.start + i) % ring)});
}

}  // namespace

PrefillPlan plan_prefill(std::span<const StepRequest> step, std::int64_t index_kpool,
                         std::int64_t states_per_page, std::int64_t ring) {
  check_kpool(index_kpool);
  if (ring < index_kpool)
    throw ConfigError(fmt::format("a tail ring of {} entries cannot hold a pool of {} tokens", ring,
                                  index_kpool));
  PrefillPlan plan;
  for (std::size_t i = 0; i < step.size(); ++i) {
    check_request(step[i], i);
    plan_pools(step[i], index_kpool, states_per_page, plan.pools);
    plan_tail(step[i], ring, plan.tails);
  }
  return plan;
}

AppendPlan plan_append(std::span<const StepRequest> step, std::int64_t index_kpool,
                       std::int64_t states_per_page) {
  check_kpool(index_kpool);
  AppendPlan plan;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const StepRequest& request = step[i];
    check_request(request, i);
    AppendJob job{};
    job.first_row = request.first_row;
    job.first_position = request.start;
    job.first_slot = std::ssize(plan.slots);
    job.tokens = static_cast<std::int32_t>(request.tokens);
    job.tail_block = request.tail_block;
    plan.jobs.push_back(job);
    for (std::int64_t position = request.start; position < request.start + request.tokens;
         ++position) {
      const bool closes = (position + 1) % index_kpool == 0;
      plan.slots.push_back(
          closes ? pool_slot(request.block_table, states_per_page, position / index_kpool) : -1);
      plan.pools_closed += closes ? 1 : 0;
    }
    plan.tokens += request.tokens;
  }
  return plan;
}

std::vector<QueryTile> plan_query_tiles(std::span<const QueryRow> rows, std::int64_t index_kpool,
                                        std::int64_t rows_per_tile) {
  check_kpool(index_kpool);
  if (rows_per_tile < 1)
    throw ConfigError(fmt::format("rows_per_tile is {}; at least 1", rows_per_tile));
  std::vector<QueryTile> tiles;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t visible = (rows[i].position + 1) / index_kpool;
    const bool joins = !tiles.empty() && tiles.back().request == rows[i].request &&
                       tiles.back().rows < rows_per_tile;
    if (!joins) {
      QueryTile tile{};
      tile.first_row = static_cast<std::int64_t>(i);
      tile.request = static_cast<std::int32_t>(rows[i].request);
      tiles.push_back(tile);
    }
    ++tiles.back().rows;
    tiles.back().pools = std::max(tiles.back().pools, visible);
  }
  return tiles;
}

}  // namespace indexpool::kernels
