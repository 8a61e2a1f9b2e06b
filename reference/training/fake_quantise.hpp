// Quantisation inside training: values stay real numbers, but take what the format can hold, or the
// noise it would add; gradients pass straight through, except where a value was clipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/dtype.hpp"

namespace indexpool::reference::training {

enum class Width { off, f16, e4m3, i8 };
std::string_view to_string(Width width);  // "off", "f16", "e4m3", "int8"

// A width for each path between the vectors and the stored pool.
struct QuantisedPaths {
  Width vectors = Width::off, pool_weights = Width::off, pooled = Width::off;
  bool any() const {
    return vectors != Width::off || pool_weights != Width::off || pooled != Width::off;
  }
  bool operator==(const QuantisedPaths&) const = default;
};
// "int8" or "e4m3": pooled in it, vectors and weights (the critical paths) in f16. Or one by one:
// "pooled=int8,vectors=f16". ConfigError names what is known.
QuantisedPaths parse_paths(std::string_view text);
std::string to_string(const QuantisedPaths& paths);

// Share of magnitudes that the scale of int8 and e4m3 covers without clipping; our choice, so that
// an outlier does not coarsen all others.
inline constexpr double covered_share = 0.999;

struct FakeQuantised {
  std::vector<double> values;
  std::vector<char> inside;  // 0 where the value was clipped: no gradient passes
};
// One scale for all values, from their `covered_share` quantile: magnitude / 127 or / 448; f16 has
// none. Rounded to nearest even.
FakeQuantised fake_quantise(std::vector<double> values, Width width);
// Instead of rounding: a number drawn evenly from half a spacing below to half above.
FakeQuantised add_quantiser_noise(std::vector<double> values, Width width, std::uint64_t seed,
                                  std::uint64_t stream);

}  // namespace indexpool::reference::training
