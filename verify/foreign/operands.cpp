// Enclosures of the logits of a foreign kernel, from whatever operands came back.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "indexpool/verify/foreign/judge.hpp"
#include "indexpool/verify/judging.hpp"

namespace indexpool::verify {
namespace {

// Vectors of an operand: codes and scales as they were stored, or the reference's own, which a
// correct kernel's may differ from by `reach` (of code times scale). Empty reach: they were stored.
struct Vectors {
  std::vector<double> codes, scales, reach;
};

bool all_numbers(const Vectors& vectors) {
  const auto finite = [](double x) { return std::isfinite(x); };
  return std::ranges::all_of(vectors.codes, finite) && std::ranges::all_of(vectors.scales, finite);
}

// The values that code * scale takes, given the enclosure of the value before quantisation and that
// of the scale. Codes are monotone in both, so the ends suffice.
reference::Range dequantised(double low, double high, const reference::Range& scale,
                             const NumericMode& mode) {
  reference::Range range{INFINITY, -INFINITY};
  for (const double s : {scale.low, scale.high}) {
    const reference::Range codes = reference::code_enclosure(low, high, s, mode);
    for (const double code : {codes.low, codes.high}) {
      for (const double by : {scale.low, scale.high}) {
        range.low = std::min(range.low, code * by);
        range.high = std::max(range.high, code * by);
      }
    }
  }
  return range;
}

Vectors reference_vectors(const reference::Bounded& bounds, std::int64_t dim,
                          const NumericMode& mode) {
  Vectors vectors;
  if (!mode.quantised()) {
    vectors.codes = bounds.value;
    for (std::size_t i = 0; i < bounds.value.size(); ++i) {
      vectors.reach.push_back(
          std::max(bounds.high[i] - bounds.value[i], bounds.value[i] - bounds.low[i]));
    }
    return vectors;
  }
  const auto width = static_cast<std::size_t>(dim);
  for (std::size_t first = 0; first < bounds.value.size(); first += width) {
    const auto part = [&](const std::vector<double>& x) {
      return std::span(x).subspan(first, width);
    };
    const reference::Quantised own = reference::quantise(part(bounds.value), mode);
    const reference::Range scale =
        reference::scale_enclosure(part(bounds.low), part(bounds.high), mode);
    vectors.scales.push_back(own.scale);
    for (std::size_t c = 0; c < width; ++c) {
      const reference::Range range =
          dequantised(bounds.low[first + c], bounds.high[first + c], scale, mode);
      const double value = own.codes[c] * own.scale;
      vectors.codes.push_back(own.codes[c]);
      vectors.reach.push_back(std::max(range.high - value, value - range.low));
    }
  }
  return vectors;
}

std::vector<double> numbers_of(DType dtype, const Tensor& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    numbers[static_cast<std::size_t>(i)] = load_element(dtype, tensor.data(), i);
  }
  return numbers;
}

// Pools that came back, where they are numbers.
std::optional<Vectors> stored_pools(const ForeignTrial& trial, StoredPools& pools) {
  const NumericMode& mode = trial.inputs.mode;
  if (const CacheAdapter* adapter = trial.cache()) {
    pools = read_foreign_pools(trial.foreign, mode, *adapter, trial.outputs);
    Vectors vectors{pools.codes, {}, {}};
    if (mode.quantised()) vectors.scales = pools.scales;
    if (all_numbers(vectors)) return vectors;
  } else if (const Tensor* pooled = trial.find("pooled"); pooled != nullptr && !mode.quantised()) {
    Vectors vectors{numbers_of(pooled->dtype(), *pooled), {}, {}};
    const auto bytes = pooled->raw();
    const auto row = static_cast<std::size_t>(pooled->dim(1) * info(pooled->dtype()).bytes);
    for (std::size_t first = 0; first < bytes.size(); first += row) {
      const auto of_pool = bytes.subspan(first, row);
      pools.raw.emplace_back(of_pool.begin(), of_pool.end());
    }
    if (all_numbers(vectors)) return vectors;
  }
  return std::nullopt;
}

std::optional<Vectors> stored_queries(const ForeignTrial& trial) {
  const NumericMode& mode = trial.inputs.mode;
  if (!mode.quantised()) {
    return Vectors{numbers_of(mode.storage, trial.inputs.queries), {}, {}};
  }
  const Tensor *codes = trial.find("q_codes"), *scales = trial.find("q_scales");
  if (codes == nullptr || scales == nullptr) return std::nullopt;
  Vectors vectors{numbers_of(mode.cache, *codes), numbers_of(DType::f32, *scales), {}};
  if (!all_numbers(vectors)) return std::nullopt;
  return vectors;
}

// |code * scale| of element i.
double magnitude(const Vectors& vectors, std::size_t i, std::size_t dim) {
  const double scale = vectors.scales.empty() ? 1 : vectors.scales[i / dim];
  return std::abs(vectors.codes[i] * scale);
}
double reach(const Vectors& vectors, std::size_t i) {
  return vectors.reach.empty() ? 0 : vectors.reach[i];
}

// How far q . k may lie from that of the centres: |q| dk + dq |k| + dq dk.
double dot_reach(const Vectors& queries, std::size_t query, const Vectors& pools, std::size_t pool,
                 std::size_t dim) {
  double sum = 0;
  for (std::size_t d = 0; d < dim; ++d) {
    const std::size_t i = query * dim + d, j = pool * dim + d;
    const double dq = reach(queries, i), dk = reach(pools, j);
    sum += magnitude(queries, i, dim) * dk + dq * magnitude(pools, j, dim) + dq * dk;
  }
  return sum;
}

// Adds what operands off by their reach change in the logits: ReLU is 1-Lipschitz.
void widen(const IndexerInputs& inputs, const Vectors& queries, const Vectors& pools,
           LogitBounds& bounds) {
  if (queries.reach.empty() && pools.reach.empty()) return;
  const auto dim = static_cast<std::size_t>(inputs.config.index_head_dim);
  const auto heads = static_cast<std::size_t>(inputs.config.index_n_heads);
  // Rounding errors are relative to operands that may be larger than the centres by their reach;
  // the coarsest accumulation (two fp16 halves) errs by less than a hundredth.
  const double scale = std::abs(inputs.logit_scale) * 1.01;
  const std::vector<std::int64_t> first_pool = first_pools(inputs);
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    reference::Bounded& of = bounds.sequences[s];
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      const auto row = static_cast<std::size_t>(sequence.first_row + i);
      for (std::int64_t p = 0; p < reference::visible_pools(i, inputs.config.index_kpool); ++p) {
        double error = 0;
        for (std::size_t h = 0; h < heads; ++h) {
          const std::size_t query = row * heads + h;
          const double head_weight = inputs.head_weights.at(static_cast<std::int64_t>(query));
          error +=
              std::abs(head_weight) *
              dot_reach(queries, query, pools, static_cast<std::size_t>(first_pool[s] + p), dim);
        }
        const auto at = static_cast<std::size_t>(i * of.shape[1] + p);
        of.low[at] -= error * scale;
        of.high[at] += error * scale;
        // Operands that may overflow give logits that may be anything.
        const bool open =
            !std::isfinite(error) || std::isnan(of.low[at]) || std::isnan(of.high[at]);
        if (open) of.low[at] = -HUGE_VAL, of.high[at] = HUGE_VAL;
      }
    }
  }
}

// Bytes that are equal for no two pools: of pools that nobody stored, equality is not known.
std::vector<std::vector<std::byte>> all_different(std::int64_t pools) {
  std::vector<std::vector<std::byte>> raw;
  for (std::int64_t p = 0; p < pools; ++p) {
    std::vector<std::byte> bytes(sizeof p);
    std::memcpy(bytes.data(), &p, sizeof p);
    raw.push_back(std::move(bytes));
  }
  return raw;
}

}  // namespace

ForeignLogitBounds foreign_logit_bounds(const ForeignTrial& trial) {
  const IndexerInputs& inputs = trial.inputs;
  const std::int64_t dim = inputs.config.index_head_dim;
  ForeignLogitBounds result;
  std::optional<Vectors> pools = stored_pools(trial, result.pools);
  result.source = pools ? "stored pools" : "the reference's pools";
  if (!pools) {
    pools = reference_vectors(reference::pool(inputs).rotated, dim, inputs.mode);
  }
  if (!pools->reach.empty() || result.pools.raw.empty()) {
    result.pools.raw = all_different(first_pools(inputs).back());
  }
  std::optional<Vectors> queries = stored_queries(trial);
  if (inputs.mode.quantised()) {
    result.source += queries ? ", stored queries" : ", the reference's queries";
  }
  if (!queries) queries = reference_vectors(reference::rotate_queries(inputs), dim, inputs.mode);

  Operands operands{queries->codes, queries->scales, {}, 0};
  operands.pools.pools = first_pools(inputs).back();
  operands.pools.head_dim = dim;
  operands.pools.codes = pools->codes;
  operands.pools.scales = pools->scales;
  operands.smallest_normal = smallest_normal(operand_dtype(inputs.mode));
  const auto& row = find_row(accumulations(), "accumulation", trial.contract.accumulation);
  result.bounds = logit_bounds(inputs, operands, accumulation_model(row.model));
  widen(inputs, *queries, *pools, result.bounds);
  return result;
}

}  // namespace indexpool::verify
