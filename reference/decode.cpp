#include "indexpool/reference/decode.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::reference {
namespace {

constexpr std::int64_t rejected = -1;

// The tail ring and the pools written so far; an entry is the row its token's key came from.
struct Cache {
  std::int64_t kpool;
  std::vector<std::int64_t> ring;
  std::vector<std::vector<std::int64_t>> pools;

  std::int64_t& slot(std::int64_t position) {
    return ring[static_cast<std::size_t>(position) % ring.size()];
  }
  // A pool beyond the sequence belongs to drafts that are never kept.
  void write_pool(std::int64_t pool, std::vector<std::int64_t> members) {
    const auto index = static_cast<std::size_t>(pool);
    if (index < pools.size()) pools[index] = std::move(members);
  }
};

// Token by token: a token that completes a pool reads the others from the ring, then every token
// is put into the ring.
void decode_step(Cache& cache, std::int64_t start, const CacheStep& step) {
  for (std::int64_t i = 0; i < step.offered; ++i) {
    const std::int64_t position = start + i;
    const std::int64_t row = i < step.kept ? position : rejected;
    if (position % cache.kpool == cache.kpool - 1) {
      std::vector<std::int64_t> members;
      for (std::int64_t at = position - cache.kpool + 1; at < position; ++at) {
        members.push_back(cache.slot(at));
      }
      members.push_back(row);
      cache.write_pool(position / cache.kpool, std::move(members));
    }
    cache.slot(position) = row;
  }
}

// All at once: pools take the tokens of the chunk from the chunk and earlier ones from the ring;
// only then the chunk's last tokens are put into the ring.
void prefill_step(Cache& cache, std::int64_t start, const CacheStep& step) {
  const std::int64_t end = start + step.offered;
  for (std::int64_t pool = start / cache.kpool; (pool + 1) * cache.kpool <= end; ++pool) {
    std::vector<std::int64_t> members;
    for (std::int64_t at = pool * cache.kpool; at < (pool + 1) * cache.kpool; ++at) {
      members.push_back(at < start ? cache.slot(at) : at);
    }
    cache.write_pool(pool, std::move(members));
  }
  const auto ring = static_cast<std::int64_t>(cache.ring.size());
  for (std::int64_t at = std::max(start, end - ring); at < end; ++at) cache.slot(at) = at;
}

}  // namespace

void validate(const std::vector<CacheStep>& steps, std::int64_t length) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    if (step.offered < 1 || step.kept < 0 || step.kept > step.offered) {
      throw ConfigError(
          fmt::format("step {}: {} tokens offered, {} kept; expected 0 <= kept <= "
                      "offered and at least one offered",
                      i, step.offered, step.kept));
    }
    if (!step.decode && step.kept != step.offered) {
      throw ConfigError(fmt::format("step {}: a prefill keeps all its {} tokens, found {} kept", i,
                                    step.offered, step.kept));
    }
    total += step.kept;
  }
  if (total != length) {
    throw ConfigError(fmt::format("the steps keep {} tokens, the sequence has {}", total, length));
  }
}

std::vector<std::vector<std::int64_t>> pool_members(std::int64_t length, std::int64_t index_kpool,
                                                    std::int64_t ring,
                                                    const std::vector<CacheStep>& steps) {
  validate(steps, length);
  if (index_kpool < 1 || ring < 1) {
    throw ConfigError(
        fmt::format("index_kpool {} and ring {}: expected at least 1", index_kpool, ring));
  }
  Cache cache{
      index_kpool, std::vector<std::int64_t>(static_cast<std::size_t>(ring), rejected),
      std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(length / index_kpool))};
  std::int64_t position = 0;
  for (const auto& step : steps) {
    if (step.decode) {
      decode_step(cache, position, step);
    } else {
      prefill_step(cache, position, step);
    }
    position += step.kept;
  }
  return cache.pools;
}

}  // namespace indexpool::reference
