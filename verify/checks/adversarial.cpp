#include <cmath>
#include <limits>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

float pick(const Random& random, std::int64_t index, std::span<const float> values) {
  return values[static_cast<std::size_t>(
      random.integer(index, 0, static_cast<std::int64_t>(values.size()) - 1))];
}

// One logit of kind `kind`, at column `p` of a row whose random numbers start at `first`.
float logit(std::int64_t kind, const Random& random, std::int64_t first, std::int64_t p) {
  static constexpr float specials[] = {nan, -nan, infinity, -infinity, 0.0f, -0.0f, 1.0f, -1.0f};
  static constexpr float zeros[] = {0.0f, -0.0f};
  static constexpr float plateau[] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 2.0f, -3.0f, 1e-45f};
  const std::int64_t at = first + p;
  switch (kind) {
    case 0:
      return static_cast<float>(random.normal(at));
    case 1:
      return pick(random, at, specials);
    case 2:
      return pick(random, at, zeros);
    case 3:
      return pick(random, at, plateau);
    case 4:  // a range so narrow that half precision sees one value
      return 100.0f + 1e-5f * static_cast<float>(random.integer(at, 0, 3));
    case 5:
      return nan;
    case 6:
      return static_cast<float>(-p);
    case 7:
      return static_cast<float>(p);
    case 8:  // every exponent and sign
      return std::ldexp(random.coin(at) ? 1.0f : -1.0f,
                        static_cast<int>(random.integer(~at, -149, 127)));
    default:
      return -1.0f;
  }
}

}  // namespace

std::vector<float> adversarial_logits(const IndexerInputs& inputs, std::int64_t stride,
                                      std::uint64_t seed) {
  constexpr std::int64_t kinds = 10;
  const Random random(seed, 400);
  const std::int64_t rows = inputs.rows();
  // Infinity beyond the visible pools: whoever looks there selects it.
  std::vector<float> logits(static_cast<std::size_t>(rows * stride), infinity);
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const std::int64_t kind = static_cast<std::int64_t>(random.bits(~row) % kinds);
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    for (std::int64_t p = 0; p < visible; ++p) {
      logits[static_cast<std::size_t>(row * stride + p)] = logit(kind, random, row * stride, p);
    }
    ++row;
  }
  return logits;
}

}  // namespace indexpool::verify
