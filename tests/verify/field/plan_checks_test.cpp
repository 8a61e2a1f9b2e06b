// Each property of a plan, held and broken.
#include "indexpool/verify/field/plan_checks.hpp"

#include <gtest/gtest.h>

namespace indexpool::verify {
namespace {

void expect_held(const Check& check) {
  EXPECT_EQ(check.status, Status::passed) << check.reason;
  EXPECT_GT(check.compared, 0);
}

void expect_broken(const Check& check, std::int64_t violations, const std::string& place) {
  EXPECT_EQ(check.status, Status::failed);
  EXPECT_EQ(check.violations, violations);
  EXPECT_NE(check.reason.find(place), std::string::npos) << check.reason;
}

TEST(SlotsCheck, SeesSharedSlotsAndSlotsOutside) {
  expect_held(check_slots(std::vector<std::int64_t>{3, 0, 2}, 4));
  expect_broken(check_slots(std::vector<std::int64_t>{3, 0, 3}, 4), 1,
                "pool 2 has slot 3, as pool 0 has: 3 pools in 2 slots");
  expect_broken(check_slots(std::vector<std::int64_t>{3, 4}, 4), 1, "pool 1: slot 4");
  expect_broken(check_slots(std::vector<std::int64_t>{-1}, 4), 1, "pool 0: slot -1");
}

TEST(ReachCheck, SeesTheFirstPoolBeyondTheTable) {
  expect_held(check_reach(2, 4, 4, 31));
  expect_held(check_reach(2, 4, 4, 34));  // an open pool needs no entry
  expect_broken(check_reach(2, 4, 4, 35), 1, "pool 8 (token 32 on)");
}

TEST(PageCheck, SeesSizesThatKernelsDoNotTakeAndPagesThatDoNotTile) {
  expect_held(check_page(160, 32));
  expect_broken(check_page(160, 64), 1, "do not tile a block of 160");
  expect_broken(check_page(2, 2), 1, "a page of 2 pools");
  expect_broken(check_page(2, 0), 2, "a page of 0 pools");
}

TEST(AddressCheck, SeesAnOffsetThatLostItsUpperBits) {
  const Address right[] = {{"page 3", 3, 10, 30}};
  const Address wrong[] = {{"page 3", 3, 10, 30}, {"page 1994", 1994, 1077120, -2147190016}};
  expect_held(check_addresses(right));
  expect_broken(check_addresses(wrong), 1, "page 1994: offset -2147190016, expected 2147777280");
}

TEST(BudgetCheck, SeesTheAllocationThatExceedsIt) {
  const Allocation buffers[] = {{"a", Bytes(10)}, {"b of rows 0 to 9", Bytes(11)}};
  expect_held(check_budget(buffers, Bytes(11)));
  expect_broken(check_budget(buffers, Bytes(10)), 1, "b of rows 0 to 9: 11 B");
}

TEST(CoverageCheck, SeesGapsOverlapsEmptyChunksAndMissingRows) {
  using Chunks = std::vector<serving::RowChunk>;
  expect_held(check_coverage(Chunks{{0, 4}, {4, 2}}, 6));
  expect_broken(check_coverage(Chunks{{0, 4}, {5, 1}}, 6), 1, "starts at row 5, expected row 4");
  expect_broken(check_coverage(Chunks{{0, 4}, {3, 3}}, 6), 1, "starts at row 3, expected row 4");
  expect_broken(check_coverage(Chunks{{0, 4}, {4, 0}, {4, 2}}, 6), 1, "a chunk of 0 rows");
  expect_broken(check_coverage(Chunks{{0, 4}}, 6), 1, "end at row 4 of 6");
  expect_broken(check_coverage(Chunks{{0, 8}}, 6), 1, "end at row 8 of 6");
}

TEST(FootprintCheck, SeesWasteAndOverflow) {
  expect_held(check_footprint("workspace", Bytes(8), Bytes(8)));
  expect_broken(check_footprint("workspace", Bytes(32), Bytes(8)), 1, "32 B reserved, 8 B");
  expect_broken(check_footprint("workspace", Bytes(4), Bytes(8)), 1, "4 B reserved, 8 B");
}

TEST(ReservedCheck, SeesAnAllocatorThatKeepsEverySize) {
  expect_held(check_reserved({Bytes(8), Bytes(8), 1, 3}));
  expect_broken(check_reserved({Bytes(20), Bytes(8), 3, 3}), 1, "3 blocks of 3 sizes kept");
}

TEST(AdmissionCheck, SeesAnEndlessWaitAndBlocksThatAreMissingLater) {
  const Demand fair[] = {{100, 2, 2}, {900, 9, 9}};  // the second is larger than the pool
  const Demand waits[] = {{100, 25, 1}};
  const Demand short_of[] = {{100, 1, 2}};
  expect_held(check_admission(fair, 5));
  expect_broken(check_admission(waits, 5), 1, "a request of 100 tokens waits for 25 blocks of 5");
  expect_broken(check_admission(short_of, 5), 1, "admitted with 1 blocks and will hold 2");
}

TEST(SourcesCheck, SeesALayerThatSelectsForItselfAndOneThatReachesTooFarBack) {
  const std::vector<std::int64_t> full{0, 1, 4};
  expect_held(check_sources(std::vector<std::int64_t>{0, 1, 1, 1, 4, 4}, full));
  expect_broken(check_sources(std::vector<std::int64_t>{0, 1, 2, 1, 4, 4}, full), 1, "layer 2");
  expect_broken(check_sources(std::vector<std::int64_t>{0, 1, 0, 1, 4, 1}, full), 2, "layer 2");
}

TEST(GridCheck, SeesAnAxisBeyondItsLimitAndRowsWithoutABlock) {
  expect_held(check_grid({4, 65535, 1, 2}, 131070));
  expect_broken(check_grid({4, 65536, 1, 1}, 65536), 1, "65536 blocks along y");
  expect_broken(check_grid({4, 65535, 1, 1}, 65536), 1, "row 65535 of 65536");
  expect_broken(check_grid({0, 1, 1, 1}, 1), 1, "0 blocks along x");
}

TEST(ColumnsCheck, SeesTheTailFallOff) {
  const IndexerConfig config;
  expect_held(check_columns(2051, config));
  expect_broken(check_columns(2048, config), 3, "column 2048 of a selection (the tail)");
  IndexerConfig without_tail;
  without_tail.index_kpool_always_select_tail = false;
  expect_held(check_columns(2048, without_tail));
}

TEST(GroupCheck, SeesAPageWhoseIndexPageIsAway) {
  expect_held(check_group(std::vector<std::int64_t>{4, 5, 7}, 64, 4));
  expect_broken(check_group(std::vector<std::int64_t>{5, 7}, 64, 4), 2, "index page 4");
}

TEST(LocalCheck, SeesSlotsOutsideTheirRankAndSlotsInOnePlace) {
  using Slots = std::vector<serving::RankSlot>;
  expect_held(check_local(Slots{{0, 0}, {1, 0}, {0, 1}}, 2, 2));
  expect_broken(check_local(Slots{{0, 2}}, 2, 2), 1, "slot 0: entry 2 of rank 0");
  expect_broken(check_local(Slots{{2, 0}}, 2, 2), 1, "rank 2");
  expect_broken(check_local(Slots{{0, 1}, {0, 1}}, 2, 2), 1, "slots 0 and 1");
}

}  // namespace
}  // namespace indexpool::verify
