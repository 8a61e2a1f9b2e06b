// The indexer cache as a serving engine fills it: chunked prefill, then decode steps with
// speculative drafts, through a tail ring. Written from the description, sharing nothing with the
// kernels, to show that any split gives the same pools.
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/model/case.hpp"

namespace indexpool::reference {

// One step of one sequence: `offered` tokens are written, the first `kept` of them stay. The next
// step continues at position + kept. Prefill steps keep all they offer.
struct CacheStep {
  std::int64_t offered = 0, kept = 0;
  bool decode = false;
};
// Throws ConfigError when kept > offered or the steps do not add up to the sequence.
void validate(const std::vector<CacheStep>& steps, std::int64_t length);

// Rows of the sequence's keys that each pool got from the ring: [pools][kpool]. The row of a token
// that is not kept is -1, so a -1 in a pool is a stale entry. A ring of index_kpool + drafts
// entries never leaves one; one entry less than that suffices when the token that completes a pool
// comes from registers, as here.
std::vector<std::vector<std::int64_t>> pool_members(std::int64_t length, std::int64_t index_kpool,
                                                    std::int64_t ring,
                                                    const std::vector<CacheStep>& steps);

}  // namespace indexpool::reference
