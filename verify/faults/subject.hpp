// The bytes that faults go into, made by the real kernels on the executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/verify/faults/page.hpp"
#include "indexpool/verify/faults/seal.hpp"
#include "indexpool/verify/stages.hpp"

namespace indexpool::verify::faults {

inline constexpr std::int64_t states_per_page = 64, head_dim = 128, index_kpool = 4;

PageShape page_shape(const std::string& mode);

// Inputs of `lengths` tokens with one head of queries.
IndexerInputs draw_inputs(const std::string& mode, const std::string& fill,
                          const std::vector<std::int64_t>& lengths, std::uint64_t seed);

struct CacheRun {
  CacheLayout layout;
  CacheOutput output;
};
// pool, seed_tail and append over the whole schedule.
CacheRun run_kernels(const IndexerInputs& inputs, const Schedule& schedule, std::uint64_t seed);

// quantize_query; the queries as they are when the mode does not quantise.
QueryOutput run_queries(const IndexerInputs& inputs);

// One page of a request: its states in order, what the kernels said of each, its seal.
struct StoredPage {
  std::vector<std::byte> bytes;  // with the padding up to the stride
  std::vector<kernels::PoolChecksum> checksums;
  PageSeal seal;
};
std::vector<StoredPage> pages_of(const IndexerInputs& inputs, const CacheRun& run,
                                 const PageShape& shape);

// Whether two words mean different numbers to a consumer: bytes of codes by their value (+0 and -0
// are equal), bytes of an element wider than a byte with their neighbours.
bool codes_differ(const PageShape& shape, Bytes before, Bytes after);
// Whether a state's numbers, codes times scale, differ.
bool state_differs(const PageShape& shape, Bytes page_before, Bytes page_after, std::int64_t state);

}  // namespace indexpool::verify::faults
