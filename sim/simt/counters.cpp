#include "indexpool/sim/simt/counters.hpp"

#include <algorithm>
#include <bit>

#include "indexpool/sim/simt/memory.hpp"

namespace indexpool::sim::simt {
namespace {

constexpr std::uint32_t all_lanes = 0xffffffffu;

// Lane i at address of lane 0 + i * bytes: the common case, without sorting.
bool is_consecutive(const WarpAccess& access, int bytes) {
  if (access.lanes != all_lanes) return false;
  std::uint64_t difference = 0;
  for (int i = 0; i < 32; ++i) {
    difference |= access.address[i] ^ (access.address[0] + static_cast<std::uint64_t>(i * bytes));
  }
  return difference == 0;
}

// The addresses of the lanes in `lanes`, sorted and distinct; returns their number.
int distinct_addresses(const WarpAccess& access, std::uint32_t lanes, std::uint64_t (&out)[32]) {
  int count = 0;
  for (; lanes != 0; lanes &= lanes - 1) out[count++] = access.address[std::countr_zero(lanes)];
  if (!std::is_sorted(out, out + count)) std::sort(out, out + count);
  return static_cast<int>(std::unique(out, out + count) - out);
}

// Passes for lanes served together: the most distinct words that one bank has to deliver. Accesses
// are aligned and at most 128 bytes together, so that one access's words never share a bank.
int group_wavefronts(const WarpAccess& access, std::uint32_t lanes, int bytes) {
  std::uint64_t words[32];
  const std::uint64_t word_bytes = static_cast<std::uint64_t>(std::max(bytes, 4));
  int count = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    words[count++] = access.address[std::countr_zero(lanes)] / word_bytes;
  }
  std::sort(words, words + count);
  count = static_cast<int>(std::unique(words, words + count) - words);
  std::array<std::uint8_t, 32> load{};
  const std::uint64_t banks = 128 / word_bytes;  // bank groups as wide as an access
  int most = 0;
  for (int i = 0; i < count; ++i) most = std::max<int>(most, ++load[words[i] % banks]);
  return most;
}

}  // namespace

AccessCost global_cost(const WarpAccess& access, int bytes) {
  if (is_consecutive(access, bytes)) {
    const std::uint64_t first = access.address[0];
    const std::uint64_t last = first + static_cast<std::uint64_t>(32 * bytes - 1);
    return {32 * bytes, static_cast<std::int64_t>(last / 32 - first / 32 + 1), 0};
  }
  std::uint64_t addresses[32];
  const int count = distinct_addresses(access, access.lanes, addresses);
  AccessCost cost{std::int64_t{count} * bytes, 0, 0};
  std::uint64_t last_sector = ~std::uint64_t{0};
  for (int i = 0; i < count; ++i) {  // an aligned access of up to 16 bytes lies in one sector
    const std::uint64_t sector = addresses[i] / 32;
    cost.sectors += sector != last_sector;
    last_sector = sector;
  }
  return cost;
}

AccessCost shared_cost(const WarpAccess& access, int bytes) {
  const int group = bytes <= 4 ? 32 : 128 / bytes;  // lanes
  if (is_consecutive(access, bytes) && access.address[0] % 128 == 0) {
    return {32 * bytes, 0, 32 / group};
  }
  std::uint64_t addresses[32];
  const int count = distinct_addresses(access, access.lanes, addresses);
  AccessCost cost{std::int64_t{count} * bytes, 0, 0};
  const std::uint32_t one_group = group == 32 ? all_lanes : (1u << group) - 1;
  for (int first = 0; first < 32; first += group) {
    const std::uint32_t lanes = access.lanes & (one_group << first);
    if (lanes != 0) cost.wavefronts += group_wavefronts(access, lanes, bytes);
  }
  return cost;
}

void Counters::start(int warps) {
  traffic = {};
  sites_.clear();
  by_key_.clear();
  recent_ = {};
  warps_.resize(std::max(warps_.size(), static_cast<std::size_t>(warps)));
  for (WarpState& warp : warps_) {  // streams keep their storage from launch to launch
    for (const std::uint32_t site : warp.active) warp.streams[site] = {};
    warp.active.clear();
  }
}

std::uint32_t Counters::site_of(std::uint64_t key, AccessKind kind, int bytes) {
  Slot& slot = recent_[(key * 0x9E3779B97F4A7C15u) >> 56];
  if (slot.key == key) return slot.site;
  const auto [entry, is_new] = by_key_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) sites_.push_back({key, kind, bytes});
  slot = {key, entry->second};
  return entry->second;
}

void Counters::access(int warp, int lane, AccessKind kind, std::uint64_t address, int bytes,
                      const SourceLine& where) {
  const std::uint64_t key = site_number(where) << 8 | static_cast<std::uint64_t>(kind) << 5 |
                            static_cast<std::uint64_t>(bytes);
  const std::uint32_t site = site_of(key, kind, bytes);
  WarpState& state = warps_[warp];
  if (site >= state.streams.size()) state.streams.resize(site + 1);
  Stream& stream = state.streams[site];
  const std::uint32_t occurrence = stream.occurrences[lane]++;
  if (occurrence == stream.started) {
    if (occurrence == 0) state.active.push_back(site);
    if (occurrence == stream.accesses.size()) stream.accesses.emplace_back();
    stream.accesses[occurrence].lanes = 0;
    ++stream.started;
  }
  WarpAccess& access = stream.accesses[occurrence];
  access.address[lane] = address;
  access.lanes |= 1u << lane;
  if (access.lanes == all_lanes) {
    add(sites_[site], access);
    access.lanes = 0;
  }
}

void Counters::flush(int warp) {
  WarpState& state = warps_[warp];
  for (const std::uint32_t site : state.active) {
    Stream& stream = state.streams[site];
    for (std::uint32_t i = 0; i < stream.started; ++i) {
      if (stream.accesses[i].lanes != 0) add(sites_[site], stream.accesses[i]);
    }
    stream.occurrences = {};
    stream.started = 0;
  }
  state.active.clear();
}

void Counters::add(const Site& site, const WarpAccess& access) {
  const bool global = site.kind <= AccessKind::global_store;
  const AccessCost cost =
      global ? global_cost(access, site.bytes) : shared_cost(access, site.bytes);
  switch (site.kind) {
    case AccessKind::global_load:
      traffic.global_load.value += cost.bytes;
      traffic.load_sectors += cost.sectors;
      break;
    case AccessKind::global_store:
      traffic.global_store.value += cost.bytes;
      traffic.store_sectors += cost.sectors;
      break;
    case AccessKind::shared_load:
      traffic.shared_load.value += cost.bytes;
      break;
    case AccessKind::shared_store:
      traffic.shared_store.value += cost.bytes;
      break;
  }
  traffic.shared_wavefronts += cost.wavefronts;
}

}  // namespace indexpool::sim::simt
