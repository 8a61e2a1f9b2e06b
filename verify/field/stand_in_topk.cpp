// Top-k by sorting each row, with one fault or none.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "indexpool/model/dtype.hpp"
#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify {
namespace {

using kernels::LaunchContext;
using kernels::OpArgs;
using kernels::TopkArgs;

struct Candidate {
  double score = 0;
  std::int64_t pool = 0;
  std::uint64_t arrival = 0;  // among equals, and where the order of arrival decides
};

// When a pool's lane gets its turn.
std::uint64_t arrival_of(std::int64_t pool, const sim::simt::Options& lanes) {
  switch (lanes.order) {
    case sim::simt::LaneOrder::forward:
      return static_cast<std::uint64_t>(pool);
    case sim::simt::LaneOrder::reverse:
      return ~static_cast<std::uint64_t>(pool);
    case sim::simt::LaneOrder::random:
      break;
  }
  return Random(lanes.seed, 1).bits(pool);
}

bool by_arrival(TopkFault fault) {
  return fault == TopkFault::ties_by_arrival || fault == TopkFault::cut_by_arrival;
}

std::vector<Candidate> candidates_of(std::span<const float> logits, std::int64_t first_pool,
                                     TopkFault fault, const sim::simt::Options& lanes) {
  std::vector<Candidate> candidates;
  for (std::int64_t pool = first_pool; pool < std::ssize(logits); ++pool) {
    const auto score = static_cast<double>(logits[static_cast<std::size_t>(pool)]);
    if (std::isnan(score) && fault != TopkFault::nan_first) continue;
    Candidate candidate{score, pool, static_cast<std::uint64_t>(pool)};
    if (std::isnan(score)) candidate.score = std::numeric_limits<double>::infinity();
    if (fault == TopkFault::f16_keys) candidate.score = round_to(DType::f16, score);
    if (fault == TopkFault::ties_hashed) candidate.arrival = mix(static_cast<std::uint64_t>(pool));
    if (by_arrival(fault)) candidate.arrival = arrival_of(pool, lanes);
    candidates.push_back(candidate);
  }
  return candidates;
}

// The upper 8 bits of an order-preserving key: the bins of a first histogram.
std::uint32_t bin_of(double score) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(score));
  const std::uint32_t key = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return key >> 24;
}

// Candidates of the bin in which the k-th lies, cut at the end of a buffer of k.
void lose_candidates(std::vector<Candidate>& candidates, std::size_t k) {
  if (candidates.size() <= k) return;
  std::vector<std::uint32_t> bins;
  bins.reserve(candidates.size());
  for (const Candidate& each : candidates) bins.push_back(bin_of(each.score));
  std::ranges::sort(bins, std::greater{});
  const std::uint32_t last_bin = bins[k - 1];
  std::size_t buffered = 0;
  std::erase_if(candidates,
                [&](const Candidate& c) { return bin_of(c.score) == last_bin && ++buffered > k; });
}

std::vector<std::int64_t> choose(std::vector<Candidate> candidates, std::size_t k,
                                 TopkFault fault) {
  if (fault == TopkFault::candidates_lost) lose_candidates(candidates, k);
  if (fault != TopkFault::first_pools_always) {
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score > b.score : a.arrival < b.arrival;
    });
  }
  candidates.resize(std::min(candidates.size(), k));
  if (fault == TopkFault::cut_by_arrival && candidates.size() == k) {
    std::ranges::sort(candidates, {}, &Candidate::arrival);
    candidates.pop_back();
  }
  std::vector<std::int64_t> pools;
  pools.reserve(candidates.size());
  for (const Candidate& each : candidates) pools.push_back(each.pool);
  std::ranges::sort(pools);
  return pools;
}

void write_row(const TopkArgs& args, const kernels::QueryRow& query, std::span<const float> logits,
               const std::vector<std::int64_t>& pools, TopkFault fault, std::int32_t* row) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t kpool = config.index_kpool;
  if (fault != TopkFault::short_rows_unfilled)
    std::fill(row, row + config.selection_width(), std::int32_t{-1});
  std::int32_t* to = row;
  for (const std::int64_t pool : pools) {
    const float score = logits[static_cast<std::size_t>(pool)];
    for (std::int64_t j = 0; j < kpool; ++j) {
      *to++ = std::isnan(score) ? std::bit_cast<std::int32_t>(score)
                                : static_cast<std::int32_t>(query.first_key + pool * kpool + j);
    }
  }
  if (!config.index_kpool_always_select_tail) return;
  to = row + config.index_topk;
  for (std::int64_t t = std::ssize(logits) * kpool; t <= query.position; ++t)
    *to++ = static_cast<std::int32_t>(query.first_key + t);
}

template <TopkFault fault>
void launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<TopkArgs>(any);
  const IndexerConfig& config = args.shape.config;
  for (std::int64_t row = 0; row < args.row_count; ++row) {
    const kernels::QueryRow& query = args.rows[row];
    const std::int64_t visible = (query.position + 1) / config.index_kpool;
    const std::int64_t chunk = query.position / stand_in_chunk_tokens * stand_in_chunk_tokens;
    const std::int64_t first = fault == TopkFault::last_chunk_only ? chunk / config.index_kpool : 0;
    const std::span logits(args.logits + row * args.logits_stride,
                           static_cast<std::size_t>(visible));
    const auto pools = choose(candidates_of(logits, first, fault, context.simt->options),
                              static_cast<std::size_t>(config.topk_pools()), fault);
    write_row(args, query, logits, pools, fault, args.selection + row * config.selection_width());
  }
}

std::optional<std::string> takes(const OpArgs& args) {
  if (std::holds_alternative<TopkArgs>(args)) return std::nullopt;
  return "it stands in for topk";
}

// It runs on the host: the executor counts nothing.
Work no_work(const OpArgs&) { return {}; }

template <TopkFault fault>
constexpr kernels::Kernel row() {
  return {"stand-in", "stand_in", takes, launch<fault>, no_work};
}

}  // namespace

const kernels::Kernel& topk_stand_in(TopkFault fault) {
  using enum TopkFault;
  static constexpr std::array rows{row<none>(),
                                   row<short_rows_unfilled>(),
                                   row<nan_first>(),
                                   row<f16_keys>(),
                                   row<candidates_lost>(),
                                   row<ties_hashed>(),
                                   row<ties_by_arrival>(),
                                   row<cut_by_arrival>(),
                                   row<last_chunk_only>(),
                                   row<first_pools_always>()};
  return rows.at(static_cast<std::size_t>(fault));
}

}  // namespace indexpool::verify
