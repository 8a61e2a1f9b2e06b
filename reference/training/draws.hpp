// Numbers from a seed: each is a function of seed, stream and index only. Internal to the layer.
#pragma once

#include <cmath>
#include <cstdint>

namespace indexpool::reference::training {

// Counter-based: the finaliser of MurmurHash3 (Appleby, public domain) over an odd-multiplied
// counter. A sum of twelve uniform numbers stands for a normal one, because logarithms and cosines
// differ between libraries in the last bit.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : key_(mixed(mixed(seed + 1) + stream)) {}

  std::uint64_t bits() { return mixed(key_ + 0x9e3779b97f4a7c15u * ++index_); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
  }
  std::uint64_t key_, index_ = 0;
};

}  // namespace indexpool::reference::training
