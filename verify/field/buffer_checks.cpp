// Properties of buffers, and of who gets in.
#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/field/plan_checks.hpp"

namespace indexpool::verify {

Check check_budget(std::span<const Allocation> allocations, Bytes budget) {
  Tally tally("budget");
  for (const Allocation& each : allocations) {
    tally.compare(each.bytes <= budget, [&] {
      return fmt::format("{}: {} B, and the budget is {} B", each.what, each.bytes.value,
                         budget.value);
    });
  }
  return std::move(tally).finish();
}

Check check_coverage(std::span<const serving::RowChunk> chunks, std::int64_t rows) {
  Tally tally("coverage");
  std::int64_t next = 0;
  for (const serving::RowChunk& chunk : chunks) {
    tally.compare(chunk.first == next && chunk.rows > 0, [&] {
      return fmt::format("a chunk of {} rows starts at row {}, expected row {}", chunk.rows,
                         chunk.first, next);
    });
    next = chunk.first + chunk.rows;
  }
  tally.compare(next == rows,
                [&] { return fmt::format("the chunks end at row {} of {}", next, rows); });
  return std::move(tally).finish();
}

Check check_footprint(const std::string& what, Bytes reserved, Bytes needed) {
  Tally tally("footprint");
  tally.compare(reserved == needed, [&] {
    return fmt::format("{}: {} B reserved, {} B can be in it ({} x)", what, reserved.value,
                       needed.value,
                       static_cast<double>(reserved.value) / static_cast<double>(needed.value));
  });
  return std::move(tally).finish();
}

Check check_reserved(const serving::AllocatorUse& use) {
  Tally tally("reserved");
  tally.compare(use.reserved <= use.largest, [&] {
    return fmt::format("{} blocks of {} sizes kept, {} B in all; the largest buffer is {} B",
                       use.blocks, use.distinct_sizes, use.reserved.value, use.largest.value);
  });
  return std::move(tally).finish();
}

Check check_admission(std::span<const Demand> demands, std::int64_t blocks) {
  Tally tally("admission");
  for (const Demand& demand : demands) {
    tally.compare(demand.held > blocks || demand.demanded <= blocks, [&] {
      return fmt::format(
          "a request of {} tokens waits for {} blocks of {}, though it will hold {}: for ever",
          demand.tokens, demand.demanded, blocks, demand.held);
    });
    tally.compare(demand.demanded >= demand.held, [&] {
      return fmt::format("a request of {} tokens is admitted with {} blocks and will hold {}",
                         demand.tokens, demand.demanded, demand.held);
    });
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
