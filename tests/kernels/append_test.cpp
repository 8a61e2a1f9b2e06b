// append against pool: decode steps write the bytes that one prefill would.
#include <cstring>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "workbench.hpp"

namespace indexpool::kernels {
namespace {

// Requests that share a step: tokens [0, length) of each, one block table each.
struct Decode {
  Shape shape;
  std::vector<Rows> rows;
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<Head> ape;
  Workbench::Sizes sizes;
};

Decode make_decode(const std::string& mode, std::int64_t head_dim, std::int64_t kpool,
                   std::int64_t requests, std::int64_t length, std::int64_t drafts = 0) {
  Decode decode;
  decode.shape = make_shape(mode, head_dim, kpool);
  decode.sizes.states_per_page = 2;
  decode.sizes.ring = ring_size(kpool, drafts);
  decode.sizes.tail_blocks = requests;
  const std::int64_t pages = length / kpool / 2 + 1;
  decode.sizes.pages = requests * pages;
  for (std::int64_t r = 0; r < requests; ++r) {
    const auto seed = static_cast<std::uint64_t>(100 + r);
    decode.rows.push_back(random_rows(decode.shape, length, seed));
    decode.tables.push_back(random_block_table(pages, r * pages, seed));
  }
  decode.ape = random_ape(decode.shape, 3);
  return decode;
}

// Takes rows [start, start + counts[r]) of each request to one step.
void step(const Decode& decode, Workbench& bench, std::int64_t start,
          const std::vector<std::int64_t>& counts, bool decodes) {
  Rows rows;
  std::vector<StepRequest> requests;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    requests.push_back(
        {start, counts[r], std::ssize(rows.keys), static_cast<std::int32_t>(r), decode.tables[r]});
    for (std::int64_t i = start; i < start + counts[r]; ++i) {
      rows.keys.push_back(decode.rows[r].keys[static_cast<std::size_t>(i)]);
      rows.gate_scores.push_back(decode.rows[r].gate_scores[static_cast<std::size_t>(i)]);
    }
  }
  if (decodes)
    bench.append(rows, requests);
  else
    bench.prefill(rows, requests);
}

std::vector<std::byte> one_prefill(const Decode& decode, std::int64_t length) {
  Workbench bench(decode.shape, decode.ape, decode.sizes);
  step(decode, bench, 0, std::vector<std::int64_t>(decode.rows.size(), length), false);
  return bench.pages();
}

TEST(Append, TokenByTokenWritesTheBytesOfOnePrefill) {
  for (const NumericMode& mode : numeric_modes()) {
    for (const std::int64_t kpool : {1, 2, 3, 4, 5, 8, 16}) {
      const std::int64_t length = 2 * kpool + 3;
      const Decode decode = make_decode(mode.name, 32, kpool, 3, length);
      Workbench bench(decode.shape, decode.ape, decode.sizes);
      for (std::int64_t t = 0; t < length; ++t) step(decode, bench, t, {1, 1, 1}, true);
      EXPECT_EQ(bench.pages(), one_prefill(decode, length)) << mode.name << ", kpool " << kpool;
    }
  }
}

TEST(Append, EveryHeadDimWritesTheBytesOfOnePrefill) {
  for (const std::int64_t head_dim : {32, 64, 128}) {
    const Decode decode = make_decode("vllm_fp8", head_dim, 4, 5, 13);
    Workbench bench(decode.shape, decode.ape, decode.sizes);
    for (std::int64_t t = 0; t < 13; ++t) step(decode, bench, t, {1, 1, 1, 1, 1}, true);
    EXPECT_EQ(bench.pages(), one_prefill(decode, 13)) << head_dim;
  }
}

TEST(Append, SeveralTokensOfOneStepPassThroughTheRing) {
  const Decode decode = make_decode("vllm_fp8", 128, 4, 3, 14, 6);
  Workbench bench(decode.shape, decode.ape, decode.sizes);
  step(decode, bench, 0, {7, 7, 7}, true);
  step(decode, bench, 7, {7, 7, 7}, true);
  EXPECT_EQ(bench.pages(), one_prefill(decode, 14));
}

TEST(Append, LaneOrderChangesNoByte) {
  for (const NumericMode& mode : numeric_modes()) {
    const Decode decode = make_decode(mode.name, 64, 4, 3, 12, 3);
    std::vector<std::vector<std::byte>> pages;
    for (const auto order : {sim::simt::LaneOrder::forward, sim::simt::LaneOrder::reverse,
                             sim::simt::LaneOrder::random}) {
      sim::simt::Options options;
      options.order = order;
      Workbench bench(decode.shape, decode.ape, decode.sizes, options);
      for (std::int64_t t = 0; t < 12; t += 4) step(decode, bench, t, {4, 4, 4}, true);
      pages.push_back(bench.pages());
    }
    EXPECT_EQ(pages[0], pages[1]) << mode.name;
    EXPECT_EQ(pages[0], pages[2]) << mode.name;
  }
}

TEST(Append, ChecksumsAreThoseOfPrefill) {
  const Decode decode = make_decode("int8", 128, 4, 2, 8);
  Workbench by_prefill(decode.shape, decode.ape, decode.sizes);
  step(decode, by_prefill, 0, {8, 8}, false);
  const auto expected = by_prefill.checksums;  // pools 0 and 1 of each request
  Workbench bench(decode.shape, decode.ape, decode.sizes);
  step(decode, bench, 0, {7, 7}, false);
  step(decode, bench, 7, {1, 1}, true);
  EXPECT_EQ(std::memcmp(&bench.checksums[0], &expected[1], sizeof(PoolChecksum)), 0);
  EXPECT_EQ(std::memcmp(&bench.checksums[1], &expected[3], sizeof(PoolChecksum)), 0);
}

TEST(Append, RequestWithoutTokensIsLeftAlone) {
  const Decode decode = make_decode("vllm_fp8", 128, 4, 3, 8);
  Workbench bench(decode.shape, decode.ape, decode.sizes);
  step(decode, bench, 0, {4, 0, 4}, true);
  Workbench expected(decode.shape, decode.ape, decode.sizes);
  step(decode, expected, 0, {4, 0, 4}, false);
  EXPECT_EQ(bench.pages(), expected.pages());
}

}  // namespace
}  // namespace indexpool::kernels
