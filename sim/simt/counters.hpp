// Counts what warps ask of memory. A warp instruction is the accesses of a warp's lanes from the
// same call site with the same occurrence number, where every lane counts its own occurrences since
// the warp last converged (a block barrier, or a warp operation of all its live lanes): lanes on
// two sides of such a point cannot share an instruction.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "indexpool/model/source_line.hpp"
#include "indexpool/model/traffic.hpp"

namespace indexpool::sim::simt {
enum class AccessKind : std::uint8_t { global_load, global_store, shared_load, shared_store };

// One warp instruction: who took part, and where each lane's access of `bytes` begins.
struct WarpAccess {
  std::array<std::uint64_t, 32> address;
  std::uint32_t lanes = 0;
};

// What one warp instruction costs. Every address is a multiple of `bytes` (1, 2, 4, 8 or 16).
struct AccessCost {
  std::int64_t bytes = 0;       // distinct
  std::int64_t sectors = 0;     // distinct 32-byte ones
  std::int64_t wavefronts = 0;  // passes over 32 banks of 4 bytes
};
AccessCost global_cost(const WarpAccess& access, int bytes);
// 4-byte accesses and below are served for the whole warp at once, 8-byte ones by half-warps,
// 16-byte ones by quarter-warps; lanes that read the same word share it.
AccessCost shared_cost(const WarpAccess& access, int bytes);

class Counters {
 public:
  void start(int warps);
  void access(int warp, int lane, AccessKind kind, std::uint64_t address, int bytes,
              const SourceLine& where);
  // The warp converges: accesses seen so far are complete.
  void flush(int warp);

  Traffic traffic;

 private:
  struct Site {
    std::uint64_t key = 0;  // call site, kind and width
    AccessKind kind{};
    int bytes = 0;
  };
  struct Stream {  // of one warp at one site since the last flush
    std::array<std::uint32_t, 32> occurrences{};
    std::vector<WarpAccess> accesses;
    std::uint32_t started = 0;  // used prefix of `accesses`
  };
  struct WarpState {
    std::vector<Stream> streams;  // by site
    std::vector<std::uint32_t> active;
  };
  std::uint32_t site_of(std::uint64_t key, AccessKind kind, int bytes);
  void add(const Site& site, const WarpAccess& access);

  static constexpr std::uint32_t none = ~0u;
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t site = none;
  };
  std::vector<Site> sites_;
  std::array<Slot, 256> recent_{};
  std::unordered_map<std::uint64_t, std::uint32_t> by_key_;
  std::vector<WarpState> warps_;
};

}  // namespace indexpool::sim::simt
