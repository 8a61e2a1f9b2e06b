// Bugs of page tables, slots and addresses, with the numbers of their reports.
#include <algorithm>
#include <numeric>
#include <string>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/field/plan_checks.hpp"
#include "indexpool/verify/field/scenario.hpp"

namespace indexpool::verify {
namespace {

constexpr std::int64_t kpool = 4;
constexpr std::int64_t block_tokens = 640;  // of GLM-5.3-Flash on 8 GPUs: 160 states, 5 pages of 32

std::vector<std::int32_t> blocks_from_one(std::int64_t count) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), 1);
  return blocks;
}

// The kernel takes the manager's blocks for its own pages, and block 0 for what the table lacks.
std::int64_t slot_by_blocks(std::span<const std::int32_t> blocks, std::int64_t page_states,
                            std::int64_t pool) {
  const auto entry = static_cast<std::size_t>(pool / page_states);
  const std::int64_t page = entry < blocks.size() ? blocks[entry] : 0;
  return page * page_states + pool % page_states;
}

std::vector<Check> blocks_read_as_pages(FieldSide side) {
  constexpr std::int64_t pools = 4096;
  const serving::PageGeometry pages = serving::page_geometry(block_tokens, kpool);
  const auto blocks = blocks_from_one((pools * kpool + block_tokens - 1) / block_tokens);
  const auto table = serving::table_in_pages(blocks, pages.pages_per_block);
  std::vector<std::int64_t> slots;
  for (std::int64_t pool = 0; pool < pools; ++pool) {
    slots.push_back(side == FieldSide::stand_in
                        ? slot_by_blocks(blocks, pages.page_states, pool)
                        : serving::pool_slot(table, pages.page_states, pool));
  }
  return {check_slots(slots, (std::ssize(blocks) + 1) * pages.block_states)};
}

std::vector<Check> table_width_in_blocks(FieldSide side) {
  constexpr std::int64_t columns = 410, last_position = 160639;
  const serving::PageGeometry pages = serving::page_geometry(block_tokens, kpool);
  const auto in_pages = serving::table_in_pages(blocks_from_one(columns), pages.pages_per_block);
  const std::int64_t width = side == FieldSide::stand_in ? columns : std::ssize(in_pages);
  return {check_reach(width, pages.page_states, kpool, last_position)};
}

bool accepts(std::int64_t tokens) {
  try {
    serving::page_geometry(tokens, kpool);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// A block of 8 tokens holds 2 pools. Ours refuses it, and takes the next larger one it can.
std::vector<Check> page_of_two_states(FieldSide side) {
  std::int64_t tokens = 8;
  if (side == FieldSide::stand_in) return {check_page(tokens / kpool, tokens / kpool)};
  while (!accepts(tokens)) tokens *= 2;
  const serving::PageGeometry pages = serving::page_geometry(tokens, kpool);
  return {check_page(pages.block_states, pages.page_states)};
}

// A product as 32-bit arithmetic gives it.
std::int64_t int32_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}

Check check_offsets(const char* what, std::span<const std::int64_t> indices, std::int64_t stride,
                    FieldSide side) {
  std::vector<Address> addresses;
  for (const std::int64_t index : indices) {
    const std::int64_t found = side == FieldSide::stand_in ? int32_product(index, stride)
                                                           : serving::strided_offset(index, stride);
    std::string name = what;
    name += ' ';
    name += std::to_string(index);
    addresses.push_back({name, index, stride, found});
  }
  return check_addresses(addresses);
}

// Pages of all layers in one stride: page 1994 starts beyond 2^31 bytes.
std::vector<Check> packed_stride_int32(FieldSide side) {
  constexpr std::int64_t stride = 1077120, pages[] = {0, 1, 1993, 1994, 4000};
  return {check_offsets("page", pages, stride, side)};
}

// Rows of 262,144 pools (2^20 tokens): row 8192 starts at element 2^31.
std::vector<Check> score_offset_int32(FieldSide side) {
  constexpr std::int64_t columns = 262144, rows[] = {0, 1, 8191, 8192};
  return {check_offsets("score row", rows, columns, side)};
}

std::vector<Check> virtual_slots_on_one_rank(FieldSide side) {
  constexpr std::int64_t ranks = 4, slots_per_rank = 1024;
  std::vector<serving::RankSlot> slots;
  for (std::int64_t slot = 0; slot < ranks * slots_per_rank; ++slot) {
    const serving::RankSlot right = serving::rank_slot(slot, ranks);
    slots.push_back(side == FieldSide::stand_in ? serving::RankSlot{right.rank, slot} : right);
  }
  return {check_local(slots, ranks, slots_per_rank)};
}

// Token pages 1 to 3 come back from host memory; page 0 holds the pools of all four.
std::vector<Check> index_page_left_behind(FieldSide side) {
  constexpr std::int64_t page_tokens = 64, wanted[] = {1, 2, 3};
  std::vector<std::int64_t> restored(std::begin(wanted), std::end(wanted));
  if (side == FieldSide::ours) {
    for (const std::int64_t page : wanted) {
      const auto group = serving::offload_group(page, kpool);
      restored.insert(restored.end(), group.begin(), group.end());
    }
    std::ranges::sort(restored);
    restored.erase(std::unique(restored.begin(), restored.end()), restored.end());
  }
  return {check_group(restored, page_tokens, kpool)};
}

}  // namespace

std::span<const FieldRow> page_scenarios() {
  static constexpr FieldRow rows[] = {{"blocks_read_as_pages", blocks_read_as_pages},
                                      {"table_width_in_blocks", table_width_in_blocks},
                                      {"page_of_two_states", page_of_two_states},
                                      {"packed_stride_int32", packed_stride_int32},
                                      {"score_offset_int32", score_offset_int32},
                                      {"virtual_slots_on_one_rank", virtual_slots_on_one_rank},
                                      {"index_page_left_behind", index_page_left_behind}};
  return rows;
}

}  // namespace indexpool::verify
