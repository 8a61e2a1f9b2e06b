// Properties of a plan: of slots, addresses, buffers, launches. Each looks at numbers that a
// planner gave and knows nothing of how it came by them; what is expected is worked out here or
// given as plain numbers, never by the planner's own formulas.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "indexpool/model/record.hpp"
#include "indexpool/model/serving_plan.hpp"

namespace indexpool::verify {

// "slots": each pool has a slot of its own within [0, capacity).
Check check_slots(std::span<const std::int64_t> slots, std::int64_t capacity);
// "reach": every pool up to that of the last position has an entry in a table of `columns` pages.
Check check_reach(std::int64_t columns, std::int64_t page_states, std::int64_t index_kpool,
                  std::int64_t last_position);
// "page": the kernels take pages of this many states, and the pages tile the block.
Check check_page(std::int64_t block_states, std::int64_t page_states);
// "address": each offset is index * stride, in all 64 bits.
struct Address {
  std::string what;  // "page 1994"
  std::int64_t index = 0, stride = 0, found = 0;
};
Check check_addresses(std::span<const Address> addresses);

struct Allocation {
  std::string what;  // "logits of rows 0 to 4095"
  Bytes bytes;
};
// "budget": none is larger than the budget.
Check check_budget(std::span<const Allocation> allocations, Bytes budget);
// "coverage": every row lies in exactly one chunk, in order.
Check check_coverage(std::span<const serving::RowChunk> chunks, std::int64_t rows);
// "footprint": a buffer holds what can be in it at once, and no more.
Check check_footprint(const std::string& what, Bytes reserved, Bytes needed);
// "reserved": the allocator keeps no more than the largest request it served.
Check check_reserved(const serving::AllocatorUse& use);

// "admission": a request demands the blocks it will hold, and is admitted when the pool has them.
struct Demand {
  std::int64_t tokens = 0, demanded = 0, held = 0;  // blocks
};
Check check_admission(std::span<const Demand> demands, std::int64_t blocks);
// "sources": each layer attends to the selection of the nearest layer with an indexer, at or before
// it. `full` are the layers with one, ascending.
Check check_sources(std::span<const std::int64_t> sources, std::span<const std::int64_t> full);
// "grid": within the device's limits, and its blocks cover the rows.
Check check_grid(const serving::Grid& grid, std::int64_t rows);
// "columns": every column of a row of the selection has a place in the kernel's index table.
Check check_columns(std::int64_t table_columns, const IndexerConfig& config);
// "group": each pool whose tokens are back on the device has its index page there as well.
Check check_group(std::span<const std::int64_t> restored_pages, std::int64_t page_tokens,
                  std::int64_t index_kpool);
// "local": every slot lies inside the buffer of its rank, and no two in one place.
Check check_local(std::span<const serving::RankSlot> slots, std::int64_t ranks,
                  std::int64_t slots_per_rank);

}  // namespace indexpool::verify
