// Which tokens arrive when: the schedule of a problem, worked out for every sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/problem.hpp"

namespace indexpool::verify {

// One sequence's share of a round: rows [first_row, first_row + offered) of the staged tensors hold
// positions start, start + 1, ...; the first `kept` stay, the others are rejected drafts.
struct Part {
  std::int64_t sequence = 0, start = 0, offered = 0, kept = 0, first_row = 0;
};
struct Round {
  std::vector<Part> prefill, decode;
};

// What a staged row holds instead of a row of the inputs.
inline constexpr std::int64_t rejected_draft = -1;  // finite values unlike any real key
inline constexpr std::int64_t never_read = -2;      // NaN, between the parts

struct Timeline {
  std::vector<Round> rounds;
  std::vector<std::int64_t> source;     // by staged row: the row of the inputs, or one of the above
  std::vector<std::int64_t> positions;  // by sequence: one past the largest position ever offered
  bool prefills = false, decodes = false;
};

// Sequences with nothing left to do drop out of the rounds. Prefill tokens of a sequence: those of
// the schedule, or (when it says all) those of the case's first `case_prefill` padded positions.
Timeline plan_timeline(const IndexerInputs& inputs, const Schedule& schedule,
                       std::int64_t case_prefill, std::uint64_t seed);

// The rows of `rows` [N, D] in staged order. Rejected drafts are drawn from (seed, stream).
Tensor stage_rows(const Tensor& rows, const Timeline& timeline, std::uint64_t seed,
                  std::uint64_t stream);

}  // namespace indexpool::verify
