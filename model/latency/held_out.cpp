#include "indexpool/model/latency/held_out.hpp"

namespace indexpool {
namespace {

// FNV-1a (RFC 9923), then the finaliser of SplitMix64: a change of one bit moves all.
std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t value = 0xcbf29ce484222325ULL ^ seed * 0x9e3779b97f4a7c15ULL;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

double place_of(std::string_view family, std::uint64_t seed) {
  return static_cast<double>(hash(family, seed) >> 11) * 0x1p-53;  // in [0, 1)
}

constexpr std::uint64_t another = 0xa0761d6478bd642fULL;  // any odd number: another hash

}  // namespace

bool held_out(std::string_view family, std::uint64_t seed, double share) {
  return place_of(family, seed) < share;
}

int fold_of(std::string_view family, std::uint64_t seed, int folds) {
  return static_cast<int>(place_of(family, seed ^ another) * folds);
}

}  // namespace indexpool
