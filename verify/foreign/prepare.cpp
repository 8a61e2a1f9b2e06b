// A case as it goes out: pages dealt, tokens staged, every tensor named.
#include <algorithm>

#include "indexpool/verify/cache_layout.hpp"
#include "indexpool/verify/fill.hpp"
#include "indexpool/verify/foreign/adapters.hpp"
#include "indexpool/verify/foreign/foreign.hpp"
#include "indexpool/verify/timeline.hpp"

namespace indexpool::verify {
namespace {

constexpr std::int64_t nowhere = -1;

Tensor table_of(const std::vector<std::int32_t>& entries, std::int64_t rows) {
  const auto width = static_cast<std::int64_t>(entries.size()) / std::max<std::int64_t>(rows, 1);
  Tensor table(DType::i32, {rows, width});
  std::ranges::copy(entries, table.as<std::int32_t>().begin());
  return table;
}

// Shuffled pages of `per_page` units each, for `units[s]` of sequence s.
Tensor deal(const IndexerInputs& inputs, std::span<const std::int64_t> units, std::int64_t per_page,
            std::uint64_t seed, std::int64_t& pages) {
  IndexerInputs unpooled;
  unpooled.config = inputs.config;
  unpooled.config.index_kpool = 1;
  unpooled.mode = inputs.mode;
  const CacheLayout layout = lay_out_cache(unpooled, units, per_page, 1, seed);
  pages = layout.pages;
  Tensor table = table_of(layout.block_table, static_cast<std::int64_t>(units.size()));
  // Entries past a sequence's end are wild on the executor, which sees every access; here one -1
  // for all, so that a reader can tell.
  for (std::size_t s = 0; s < units.size(); ++s) {
    const std::int64_t used = (units[s] + per_page - 1) / per_page;
    auto row = table.as<std::int32_t>().subspan(s * static_cast<std::size_t>(table.dim(1)),
                                                static_cast<std::size_t>(table.dim(1)));
    std::fill(row.begin() + used, row.end(), -1);
  }
  return table;
}

// Slot of the pool that position `position` of a sequence closes.
std::int64_t slot_of(const ForeignPaging& paging, std::int64_t kpool, std::int64_t sequence,
                     std::int64_t position) {
  if ((position + 1) % kpool != 0) return nowhere;
  const std::int64_t pool = position / kpool, states = paging.states_per_page;
  const auto entry = static_cast<std::size_t>(sequence * paging.block_table.dim(1) + pool / states);
  return paging.block_table.as<std::int32_t>()[entry] * states + pool % states;
}

void deal_pages(ForeignCase& foreign) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const std::int64_t kpool = inputs.config.index_kpool;
  ForeignPaging& paging = foreign.paging;
  std::vector<std::int64_t> pools;
  for (const std::int64_t tokens : foreign.reach) pools.push_back(tokens / kpool);
  paging.block_table = deal(inputs, pools, paging.states_per_page, foreign.seed, paging.pages);
  paging.token_page_table =
      deal(inputs, foreign.reach, token_page, foreign.seed + 1, paging.token_pages);
  paging.positions = Tensor(DType::i64, {inputs.rows()});
  paging.slot_mapping = Tensor(DType::i64, {inputs.rows()});
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      const auto row = static_cast<std::size_t>(sequence.first_row + i);
      paging.positions.as<std::int64_t>()[row] = i;
      paging.slot_mapping.as<std::int64_t>()[row] =
          slot_of(paging, kpool, static_cast<std::int64_t>(s), i);
    }
  }
}

void stage(ForeignCase& foreign, const Timeline& timeline) {
  constexpr std::uint64_t rejected_keys = 510, rejected_gates = 511;
  const IndexerInputs& inputs = foreign.test_case.inputs;
  ForeignSchedule& schedule = foreign.schedule;
  schedule.keys = stage_rows(inputs.keys, timeline, foreign.seed, rejected_keys);
  schedule.gate_scores = stage_rows(inputs.gate_scores, timeline, foreign.seed, rejected_gates);
  const std::int64_t rows = schedule.keys.dim(0);
  schedule.positions = Tensor(DType::i64, {rows});
  schedule.slot_mapping = Tensor(DType::i64, {rows});
  auto positions = schedule.positions.as<std::int64_t>();
  auto slots = schedule.slot_mapping.as<std::int64_t>();
  std::ranges::fill(positions, nowhere);
  std::ranges::fill(slots, nowhere);
  std::vector<std::int64_t> parts;
  const auto add = [&](std::size_t round, std::int64_t phase, const Part& part) {
    parts.insert(parts.end(), {static_cast<std::int64_t>(round), phase, part.sequence, part.start,
                               part.offered, part.kept, part.first_row});
    for (std::int64_t i = 0; i < part.offered; ++i) {
      const auto row = static_cast<std::size_t>(part.first_row + i);
      positions[row] = part.start + i;
      slots[row] =
          slot_of(foreign.paging, inputs.config.index_kpool, part.sequence, positions[row]);
    }
  };
  for (std::size_t round = 0; round < timeline.rounds.size(); ++round) {
    for (const Part& part : timeline.rounds[round].prefill) add(round, 0, part);
    for (const Part& part : timeline.rounds[round].decode) add(round, 1, part);
  }
  constexpr std::int64_t columns = 7;
  schedule.parts = Tensor(DType::i64, {static_cast<std::int64_t>(parts.size()) / columns, columns});
  std::ranges::copy(parts, schedule.parts.as<std::int64_t>().begin());
}

}  // namespace

bool about_ties(const Problem& problem) { return find_fill(problem.fill).about_ties; }

ForeignCase prepare_foreign(Case test_case, const Options& options, bool ties) {
  ForeignCase foreign;
  foreign.test_case = std::move(test_case);
  foreign.test_case.expected.clear();  // a kernel is not told the answers
  foreign.test_case.projections = {};
  foreign.about_ties = ties;
  foreign.seed = options.seed;
  foreign.paging.states_per_page = options.states_per_page;
  const Timeline timeline = plan_timeline(foreign.test_case.inputs, options.schedule,
                                          foreign.test_case.prefill, options.seed);
  foreign.reach = timeline.positions;
  deal_pages(foreign);
  if (timeline.decodes || timeline.rounds.size() > 1) stage(foreign, timeline);
  return foreign;
}

}  // namespace indexpool::verify
