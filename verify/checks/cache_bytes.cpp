// Bytes that must not have changed, and bytes that must be exactly what was written.
#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {

Check check_cache_untouched(const CacheLayout& layout, const CacheOutput& output) {
  Tally tally("untouched");
  for (std::size_t i = 0; i < output.cache.size(); ++i) {
    if (output.written[i] != 0) continue;
    tally.compare(output.cache[i] == poison, [&] {
      const auto at = static_cast<std::int64_t>(i);
      return fmt::format("page {}, byte {}: written, though no pool lies there",
                         at / layout.page_stride, at % layout.page_stride);
    });
  }
  return std::move(tally).finish();
}

namespace {

// The ring as it must look after every round: rows in the order in which they arrived.
std::vector<std::byte> expected_tail(const CacheInputs& cache) {
  const CacheLayout& layout = cache.layout;
  std::vector<std::byte> tail(static_cast<std::size_t>(layout.tail_bytes()), poison);
  const auto row_bytes = static_cast<std::size_t>(layout.tail_row_bytes());
  const auto write = [&](const Part& part) {
    for (std::int64_t i = 0; i < part.offered; ++i) {
      const std::size_t row = static_cast<std::size_t>(part.first_row + i) * row_bytes;
      const std::int64_t position = part.start + i;
      std::memcpy(tail.data() + layout.tail_offset(part.sequence, 0, position),
                  cache.keys.data() + row, row_bytes);
      std::memcpy(tail.data() + layout.tail_offset(part.sequence, 1, position),
                  cache.gate_scores.data() + row, row_bytes);
    }
  };
  for (const Round& round : cache.timeline.rounds) {
    for (const Part& part : round.prefill) write(part);
    for (const Part& part : round.decode) write(part);
  }
  return tail;
}

}  // namespace

Check check_tail(const CacheInputs& cache, const std::vector<std::byte>& tail) {
  Tally tally("tail");
  const std::vector<std::byte> expected = expected_tail(cache);
  const std::int64_t row = cache.layout.tail_row_bytes();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    tally.compare(tail[i] == expected[i], [&] {
      const auto at = static_cast<std::int64_t>(i) % cache.layout.tail_block_stride;
      const std::int64_t block = static_cast<std::int64_t>(i) / cache.layout.tail_block_stride;
      const std::int64_t ring = cache.layout.ring;
      if (at >= 2 * ring * row) {
        return fmt::format("tail block {}: padding byte {} written", block, at);
      }
      return fmt::format("tail block {}, {} of ring entry {}, byte {}: not the row that was kept",
                         block, at < ring * row ? "key" : "gate scores", at / row % ring, at % row);
    });
  }
  return std::move(tally).finish();
}

Check check_schedule(const IndexerInputs& inputs, const StoredPools& stored,
                     const StoredPools& one_shot, Mask mine) {
  Tally tally("schedule");
  for (std::int64_t pool = 0; pool < stored.pools; ++pool) {
    const auto p = static_cast<std::size_t>(pool);
    if (mine[p] == 0) continue;
    tally.compare(stored.raw[p] == one_shot.raw[p], [&] {
      return fmt::format("{}: other bytes than from a one-shot prefill", pool_name(inputs, pool));
    });
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
