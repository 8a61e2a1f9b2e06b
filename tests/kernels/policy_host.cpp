#include "policy_host.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "logits_bench.hpp"

namespace indexpool::kernels {
namespace {

constexpr double unit = 0x1p-24;
constexpr double exp_error = 4 * unit;  // 2 ulp
constexpr double tiny = 0x1p-125;       // what flushed or subnormal results may lose

// Additions that one element goes through: a lane's channels, then its group's tree.
double depth_of(std::int64_t head_dim) {
  return static_cast<double>(head_dim <= 256 ? 8 : head_dim / 32) + 5;
}

struct Sum {
  double value = 0, magnitude = 0;
  void add(double term) { value += term, magnitude += std::abs(term); }
};

Sum dot(const Tensor& a, std::int64_t first_a, const Tensor& b, std::int64_t first_b,
        std::int64_t count) {
  Sum sum;
  for (std::int64_t c = 0; c < count; ++c) sum.add(a.at(first_a + c) * b.at(first_b + c));
  return sum;
}

// exp(z_i - max z) over their sum; z off by `score_error` each.
std::vector<Near> softmax(const std::vector<double>& z, double score_error) {
  const double largest = *std::max_element(z.begin(), z.end());
  double sum = 0, worst = 0;
  for (const double score : z) {
    sum += std::exp(score - largest);
    worst = std::max(worst, largest - score);
  }
  // Numerator and denominator: exp, its rounded argument, the scores; sums and the quotient.
  const double relative =
      2 * (exp_error + worst * unit + 2 * score_error) + (static_cast<double>(z.size()) + 1) * unit;
  std::vector<Near> weights;
  for (const double score : z) {
    const double weight = std::exp(score - largest) / sum;
    weights.push_back({weight, weight * relative * 1.01 + tiny});
  }
  return weights;
}

struct HostWeights {
  const PoolingInputs& in;
  Accumulation accumulation;

  std::int64_t row(std::int64_t g, std::int64_t i) const {
    return in.groups[static_cast<std::size_t>(g)].first_row +
           in.offsets[static_cast<std::size_t>(i)];
  }
  std::int64_t absent(std::int64_t g) const {
    return in.groups[static_cast<std::size_t>(g)].absent;
  }

  Near cosine(const Tensor& queries, std::int64_t g, std::int64_t i) const {
    const std::int64_t d = in.head_dim, at = row(g, i) * d;
    const Sum qv = dot(queries, g * d, in.vectors, at, d);
    const double qq = dot(queries, g * d, queries, g * d, d).value;
    const double vv = dot(in.vectors, at, in.vectors, at, d).value;
    if (qq == 0 || vv == 0) return {};
    const double norms = std::sqrt(qq) * std::sqrt(vv), sums = depth_of(d) * unit * 1.01;
    const double value = qv.value / norms;
    // Each root halves its sum's error; two roots, their product, the quotient.
    return {value, sums * qv.magnitude / norms + std::abs(value) * (sums + 5 * unit)};
  }

  std::vector<Near> operator()(const GivenWeights& given) const {
    std::vector<Near> weights;
    for (const float w : given.pool_weights.as<float>()) weights.push_back({w, 0});
    return weights;
  }
  std::vector<Near> operator()(const RoleMatrix& roles) const {
    std::vector<Near> all;
    const auto m = static_cast<std::size_t>(in.index_kpool);
    const auto values = roles.pool_matrix.as<float>();
    for (std::size_t first = 0; first < values.size(); first += m) {
      const std::vector<double> z(values.begin() + static_cast<std::ptrdiff_t>(first),
                                  values.begin() + static_cast<std::ptrdiff_t>(first + m));
      const auto row = softmax(z, 0);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  std::vector<Near> operator()(const AdditiveTerms& terms) const {
    return for_each_vector([&](std::int64_t g, std::int64_t i) {
      const std::int64_t at = g * in.index_kpool + i;
      const double x = terms.distances.at(at) / terms.sigma, half = x * x / 2;
      const double a = terms.ages.at(at) / terms.tau;
      const double position = terms.alpha * std::exp(-half), age = terms.gamma * std::exp(-a);
      const Near cos = cosine(terms.queries, g, i);
      const double content = terms.beta * (terms.raw_cosine ? cos.value : (1 + cos.value) / 2);
      const double scale = terms.raw_cosine ? terms.beta : terms.beta / 2.0;
      const double sums = std::abs(position) + std::abs(content) + std::abs(age);
      return Near{position + content + age, std::abs(position) * (exp_error + half * 4 * unit) +
                                                std::abs(age) * (exp_error + a * unit * 1.01) +
                                                scale * cos.error * 1.01 + 5 * unit * sums + tiny};
    });
  }
  std::vector<Near> operator()(const GateOperands& gate) const {
    const std::int64_t hidden = gate.hidden_states.dim(1), width = hidden + in.head_dim;
    const double hidden_error = dot_error(accumulation, hidden) + 8 * unit;
    return for_each_vector([&](std::int64_t g, std::int64_t i) {
      const std::int64_t t = g / in.heads, h = g % in.heads;
      const Sum state = dot(gate.hidden_states, t * hidden, gate.gate_weight, h * width, hidden);
      const Sum vector = dot(gate.gate_weight, h * width + hidden, in.vectors,
                             row(g, i) * in.head_dim, in.head_dim);
      const double bias = gate.gate_bias.at(h), z = state.value + vector.value + bias;
      const double error = hidden_error * state.magnitude +
                           depth_of(in.head_dim) * unit * 1.01 * vector.magnitude +
                           2 * unit * (state.magnitude + vector.magnitude + std::abs(bias));
      const double w = 1 / (1 + std::exp(-z));
      return Near{w, w * (1 - w) * error * 1.1 + w * (exp_error + 2 * unit) + tiny};
    });
  }
  std::vector<Near> operator()(const AccessTerms& terms) const {
    return for_each_vector([&](std::int64_t g, std::int64_t i) {
      double total = 0;
      for (std::int64_t k = absent(g); k < in.index_kpool; ++k)
        total += terms.accesses.at(g * in.index_kpool + k);
      const std::int64_t at = g * in.index_kpool + i;
      const double tf = total > 0 ? terms.accesses.at(at) / total : 0;
      const double ratio =
          (1.0 + static_cast<double>(terms.all_groups)) / (1 + terms.groups_accessed.at(at));
      const double log = std::log(ratio), idf = log + 1;
      const Near cos = cosine(terms.queries, g, i);
      const double used = terms.mix[0] * tf * idf,
                   placed = terms.mix[1] * terms.position_terms.at(i);
      const double relevant = terms.mix[2] * (1 + cos.value) / 2;
      // The ratio has three roundings, the logarithm one ulp.
      const double idf_error = (3 + 2 * std::abs(log) + std::abs(idf)) * unit;
      return Near{used + placed + relevant,
                  std::abs(terms.mix[0] * tf) * idf_error +
                      6 * unit * (std::abs(used) + std::abs(placed) + std::abs(relevant)) +
                      std::abs(terms.mix[2]) / 2 * cos.error * 1.01 + tiny};
    });
  }
  std::vector<Near> operator()(const ChannelScores& scores) const {
    const std::int64_t m = in.index_kpool, d = in.head_dim;
    std::vector<Near> all(static_cast<std::size_t>(in.group_count() * m * d));
    for (std::int64_t g = 0; g < in.group_count(); ++g) {
      for (std::int64_t c = 0; c < d; ++c) {
        std::vector<double> z;
        double largest = 0;
        for (std::int64_t i = absent(g); i < m; ++i) {
          z.push_back(scores.gate_scores.at(row(g, i) * d + c) +
                      scores.position_bias.at(i * d + c));
          largest = std::max(largest, std::abs(z.back()));
        }
        const auto weights = softmax(z, largest * unit);
        for (std::int64_t i = absent(g); i < m; ++i)
          all[static_cast<std::size_t>((g * m + i) * d + c)] =
              weights[static_cast<std::size_t>(i - absent(g))];
      }
    }
    return all;
  }
  std::vector<Near> operator()(const NoWeights&) const { return {}; }

 private:
  template <class F>
  std::vector<Near> for_each_vector(F&& f) const {
    std::vector<Near> weights;
    for (std::int64_t g = 0; g < in.group_count(); ++g)
      for (std::int64_t i = 0; i < in.index_kpool; ++i)
        weights.push_back(i < absent(g) ? Near{} : f(g, i));
    return weights;
  }
};

void norm_and_rotate(const PoolingInputs& in, std::int64_t group, std::vector<Near>& y) {
  const auto d = static_cast<double>(in.head_dim);
  double squares = 0, spread = 0;
  for (const Near& c : y) {
    squares += c.value * c.value;
    spread += 2 * std::abs(c.value) * c.error + c.error * c.error;
  }
  const double mean = squares / d + in.norm_rope.eps, root = std::sqrt(mean);
  const double root_error = (spread / d + (depth_of(in.head_dim) + 3) * unit * mean) / mean;
  for (std::size_t c = 0; c < y.size(); ++c) {
    const double weight = in.norm_rope.norm_weight.at(static_cast<std::int64_t>(c));
    const double value = y[c].value * weight / root;
    y[c] = {value, std::abs(y[c].error * weight / root) * 1.01 +
                       std::abs(value) * (root_error + 3 * unit) + tiny};
  }
  const std::int64_t rotated = in.norm_rope.rope_dims, first = in.head_dim - rotated;
  for (std::int64_t p = 0; p < rotated; p += 2) {
    Near& a = y[static_cast<std::size_t>(first + p)];
    Near& b = y[static_cast<std::size_t>(first + p + 1)];
    const double cos = in.norm_rope.rope.at(group * rotated + p);
    const double sin = in.norm_rope.rope.at(group * rotated + p + 1);
    const double reach = std::abs(a.value) + std::abs(b.value);
    const double error = a.error + b.error + 2 * unit * reach;
    const Near before = a;
    a = {before.value * cos - b.value * sin, error};
    b = {before.value * sin + b.value * cos, error};
  }
}

double scale_for(const NumericMode& mode, double amax) {
  const double floored = std::max(amax, static_cast<double>(1e-4f));
  if (mode.scale == ScaleRule::amax)
    return static_cast<float>(floored / (mode.cache == DType::i8 ? 127 : 448));
  double scale = 1;
  while (scale * 448 < floored) scale *= 2;
  while (scale / 2 * 448 >= floored) scale /= 2;
  return scale;
}

double code_value(DType cache, double x) {
  const auto rounded = static_cast<float>(x);
  if (cache == DType::i8) return i8_from_float(rounded);
  return static_cast<double>(float_from_e4m3(e4m3_from_float(rounded)));
}

// The finaliser of MurmurHash3, and args.hpp's weight of a code.
std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}
std::uint32_t code_weight(std::uint32_t c) {
  const std::uint32_t l = c / 8, i = c % 8;
  return (16 * mixed(i) + 2 * i + 1) * (4096 * mixed(l) + 16 * l + 1);
}

// Both sums of a row as it is stored, its scale aside.
std::pair<std::uint32_t, std::uint32_t> exact_pair(DType cache, const std::byte* row,
                                                   std::int64_t channels) {
  std::uint32_t exact = 0, weighted = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::uint32_t h = code_weight(static_cast<std::uint32_t>(c));
    std::uint32_t units = 0, high = 0, more = 0;  // more: what a low half weighs on top
    if (cache == DType::f32) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, row + 4 * c, 4);
      bits = std::rotl(bits, 1);
      units = bits & 0xffff;
      high = bits >> 16;
      more = static_cast<std::uint32_t>(2 * channels);
    } else if (cache == DType::e4m3 || cache == DType::i8) {
      const double steps = load_element(cache, row, c) * (cache == DType::e4m3 ? 512 : 1);
      units = static_cast<std::uint32_t>(static_cast<std::int32_t>(steps));
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, row + 2 * c, 2);
      units = std::rotl(bits, 1);
    }
    exact += units + high;
    weighted += h * (units + high + more * units);
  }
  return {exact, weighted};
}

std::string checksum_difference(const PoolingInputs& in, const HostPooled& host,
                                const std::byte* row, std::optional<float> scale,
                                const PoolChecksum& sums) {
  Sum plain, placed;
  double error = tiny;
  const auto d = static_cast<double>(in.head_dim);
  for (std::size_t c = 0; c < host.y.size(); ++c) {
    plain.add(host.y[c].value);
    placed.add(host.y[c].value * (static_cast<double>(c) + 1) / d);
    error += host.y[c].error;
  }
  auto [exact, weighted] = exact_pair(in.mode.cache, row, in.head_dim);
  if (scale) exact += mixed(std::bit_cast<std::uint32_t>(*scale));
  const double slack = error + depth_of(in.head_dim) * unit * 1.01 * plain.magnitude;
  if (!(std::abs(sums.sum - plain.value) <= slack))
    return fmt::format("sum {} instead of {} +- {}", sums.sum, plain.value, slack);
  if (!(std::abs(sums.weighted_sum - placed.value) <= slack))
    return fmt::format("weighted sum {} instead of {}", sums.weighted_sum, placed.value);
  if (sums.exact_sum != exact || sums.exact_weighted_sum != weighted)
    return fmt::format("exact pair {}, {} instead of {}, {}", sums.exact_sum,
                       sums.exact_weighted_sum, exact, weighted);
  return {};
}

}  // namespace

std::vector<Near> host_weights(const PoolingInputs& inputs, Accumulation accumulation) {
  return std::visit(HostWeights{inputs, accumulation}, inputs.weights);
}

HostPooled host_pooled(const PoolingInputs& in, const std::vector<float>& pool_weights,
                       std::int64_t group) {
  const VectorGroup& record = in.groups[static_cast<std::size_t>(group)];
  const std::int64_t m = in.index_kpool, d = in.head_dim, first = record.absent;
  const auto weight = [&](std::int64_t i, std::int64_t c) {
    const std::int64_t at = in.per_channel() ? (group * m + i) * d + c : record.weight_set * m + i;
    return static_cast<double>(pool_weights[static_cast<std::size_t>(at)]);
  };
  const bool divide = find_policy(in.policy).normalisation == Normalisation::division;
  const auto present = static_cast<double>(m - first);
  HostPooled result;
  Sum weights;
  if (divide)
    for (std::int64_t i = first; i < m; ++i) weights.add(weight(i, 0));
  result.fallback = divide && std::abs(weights.value) < 0x1p-126;
  for (std::int64_t c = 0; c < d; ++c) {
    Sum y;
    for (std::int64_t i = first; i < m; ++i) {
      const std::int64_t row = record.first_row + in.offsets[static_cast<std::size_t>(i)];
      y.add((result.fallback ? 1 : weight(i, c)) * in.vectors.at(row * d + c));
    }
    Near value = {y.value, present * unit * 1.01 * y.magnitude + tiny};
    const double divisor = result.fallback ? present : weights.value;
    if (divide)
      value = {y.value / divisor,
               std::abs(value.error / divisor) +
                   std::abs(y.value / divisor) *
                       (unit + (result.fallback ? 0
                                                : 1.1 * present * unit * weights.magnitude /
                                                      std::abs(divisor)))};
    result.y.push_back(value);
  }
  if (!in.norm_rope.norm_weight.empty()) norm_and_rotate(in, group, result.y);
  return result;
}

std::string difference(const PoolingInputs& in, const PolicyRun& run, std::int64_t group) {
  const HostPooled host = host_pooled(in, run.pool_weights, group);
  const auto at = static_cast<std::size_t>(group);
  const auto rounded = [&](double x) { return round_to(in.mode.pooled, x); };
  if (run.fallbacks[at] != (host.fallback ? 1 : 0))
    return fmt::format("group {}: fallback {}", group, run.fallbacks[at]);
  double scale = 1, low_amax = 0, high_amax = 0;
  for (const Near& y : host.y) {
    low_amax = std::max(low_amax, std::abs(rounded(std::abs(y.value) - y.error)));
    high_amax = std::max(high_amax, rounded(std::abs(y.value) + y.error));
  }
  if (in.mode.quantised()) {
    scale = static_cast<double>(run.scales[at]);
    if (scale < scale_for(in.mode, low_amax) || scale > scale_for(in.mode, high_amax))
      return fmt::format("group {}: scale {}", group, scale);
  }
  for (std::size_t c = 0; c < host.y.size(); ++c) {
    const Near& y = host.y[c];
    const double found = load_element(in.mode.cache, run.pooled.data(),
                                      group * in.head_dim + static_cast<std::int64_t>(c));
    const auto stored = [&](double x) {
      const double r = rounded(x);
      return in.mode.quantised() ? code_value(in.mode.cache, r / scale)
                                 : round_to(in.mode.cache, r);
    };
    if (!(found >= stored(y.value - y.error) && found <= stored(y.value + y.error)))
      return fmt::format("group {}, channel {}: {} instead of {} +- {} (scale {})", group, c, found,
                         y.value, y.error, scale);
  }
  if (run.checksums.empty()) return {};
  const std::byte* row =
      run.pooled.data() + group * in.head_dim * std::int64_t{info(in.mode.cache).bytes};
  const auto stored_scale = in.mode.quantised() ? std::optional(run.scales[at]) : std::nullopt;
  const auto wrong = checksum_difference(in, host, row, stored_scale, run.checksums[at]);
  return wrong.empty() ? wrong : fmt::format("group {}: {}", group, wrong);
}

}  // namespace indexpool::kernels
