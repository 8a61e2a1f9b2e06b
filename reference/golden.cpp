#include "indexpool/reference/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/rotate.hpp"

namespace indexpool::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::string coordinates(std::int64_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return to_string(index);
}

// Among answers rounded to few bits the enclosure is a set of neighbours, each as good as another:
// how far across it an answer lies says nothing (`rounded`).
void compare_element(Agreement& result, double answer, double value, double low, double high,
                     std::int64_t flat, const Shape& shape, bool rounded = false) {
  ++result.compared;
  if (answer != value) ++result.unequal;
  const double reach = answer > value ? high - value : value - low;
  if (!rounded && answer != value && reach > 0) {
    result.utilisation = std::max(result.utilisation, std::abs(answer - value) / reach);
  }
  if (admits(low, high, answer)) return;
  if (result.outside++ == 0) {
    result.first_fault =
        fmt::format("{}: {} outside [{}, {}]", coordinates(flat, shape), answer, low, high);
  }
}

Agreement compare(std::string step, const Tensor& answers, const Bounded& bounds) {
  Agreement result;
  result.step = std::move(step);
  require(answers.size() == bounds.size(), "an expected tensor has the shape of its step");
  for (std::int64_t i = 0; i < answers.size(); ++i) {
    compare_element(result, answers.at(i), bounds.value[at(i)], bounds.low[at(i)],
                    bounds.high[at(i)], i, bounds.shape, info(answers.dtype()).bytes < 4);
  }
  return result;
}

// Quantised vectors as they were stored.
struct Stored {
  std::vector<double> codes, scales;
};

Stored stored_queries(const Case& c) {
  Stored result;
  const Tensor& codes = c.expected.at("q_codes");
  const Tensor& scales = c.expected.at("q_scales");
  for (std::int64_t i = 0; i < codes.size(); ++i) {
    result.codes.push_back(load_element(c.inputs.mode.cache, codes.data(), i));
  }
  for (std::int64_t i = 0; i < scales.size(); ++i) result.scales.push_back(scales.at(i));
  return result;
}

// Rows of codes, each followed by its binary32 scale.
Stored stored_pools(const Case& c) {
  Stored result;
  const Tensor& rows = c.expected.at("pool_rows");
  const std::int64_t dim = c.inputs.config.index_head_dim;
  for (std::int64_t p = 0; p < rows.size() / (dim + 4); ++p) {
    const std::byte* row = rows.data() + p * (dim + 4);
    for (std::int64_t d = 0; d < dim; ++d) {
      result.codes.push_back(load_element(c.inputs.mode.cache, row, d));
    }
    float scale = 0;
    std::memcpy(&scale, row + dim, sizeof scale);
    result.scales.push_back(static_cast<double>(scale));
  }
  return result;
}

// `judged`: enclosure from the recorded inputs of the step; `own`: the reference's own chain.
void compare_quantiser(std::vector<Agreement>& results, const std::string& what,
                       const Bounded& judged, const Bounded& own, const Stored& stored,
                       const NumericMode& mode) {
  Agreement scales, codes;
  scales.step = what + "_scales";
  codes.step = what + "_codes";
  const auto dim = at(judged.shape.back());
  for (std::size_t v = 0; v < stored.scales.size(); ++v) {
    const auto low = std::span(judged.low).subspan(v * dim, dim);
    const auto high = std::span(judged.high).subspan(v * dim, dim);
    const auto range = scale_enclosure(low, high, mode);
    const auto answer = quantise(std::span(own.value).subspan(v * dim, dim), mode);
    const auto flat = static_cast<std::int64_t>(v);
    compare_element(scales, stored.scales[v], answer.scale, range.low, range.high, flat,
                    Shape{static_cast<std::int64_t>(stored.scales.size())});
    for (std::size_t d = 0; d < dim; ++d) {
      const auto code = code_enclosure(low[d], high[d], stored.scales[v], mode);
      compare_element(codes, stored.codes[v * dim + d], answer.codes[d], code.low, code.high,
                      static_cast<std::int64_t>(v * dim + d), judged.shape, true);
    }
  }
  results.push_back(scales);
  results.push_back(codes);
}

std::vector<double> values_of(const Tensor& tensor) { return Bounded::exact(tensor).value; }

// The operands of the logits as the case's implementation stored them; pools it did not record are
// the reference's, with their half-widths in `pool_reach`.
struct StoredOperands {
  Stored queries, pools;
  std::vector<double> head_weights, pool_reach;
  std::vector<std::int64_t> first_pool;
  bool present = false;
};

StoredOperands stored_operands(const Case& c, const Pooled& pooled) {
  StoredOperands result;
  result.head_weights = values_of(c.inputs.head_weights);
  result.first_pool = pooled.first_pool;
  if (c.inputs.mode.quantised()) {
    result.present = c.expected.contains("pool_rows") && c.expected.contains("q_codes") &&
                     c.expected.contains("q_scales");
    if (!result.present) return result;
    result.queries = stored_queries(c);
    result.pools = stored_pools(c);
    return result;
  }
  result.present = !c.inputs.mode.hadamard;
  result.queries.codes = values_of(c.inputs.queries);
  if (c.expected.contains("pooled")) {
    result.pools.codes = values_of(c.expected.at("pooled"));
    return result;
  }
  result.pools.codes = pooled.pooled.value;
  for (std::size_t i = 0; i < pooled.pooled.value.size(); ++i) {
    result.pool_reach.push_back(std::max(pooled.pooled.high[i] - pooled.pooled.value[i],
                                         pooled.pooled.value[i] - pooled.pooled.low[i]));
  }
  return result;
}

// Adds what pools off by `reach` change in the logits: ReLU is 1-Lipschitz.
void widen_by_pools(Bounded& bounds, const LogitOperands& operands, std::span<const double> reach) {
  const auto dim = at(operands.head_dim), heads = at(operands.heads);
  const auto columns = at(bounds.shape[1]);
  for (std::size_t i = 0; i < bounds.value.size(); ++i) {
    if (std::isnan(bounds.value[i])) continue;
    const std::size_t row = i / columns, pool = i % columns;
    double error = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      double dot = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        dot += std::abs(operands.queries[(row * heads + h) * dim + d]) * reach[pool * dim + d];
      }
      error += std::abs(operands.head_weights[row * heads + h]) * dot;
    }
    error *= operands.logit_scale * 1.001;  // roundings relative to roundings
    bounds.low[i] -= error;
    bounds.high[i] += error;
  }
}

Bounded sequence_logits(const Case& c, std::size_t s, const StoredOperands& stored,
                        Precision precision) {
  const auto& config = c.inputs.config;
  const auto& sequence = c.inputs.sequences[s];
  const auto heads = at(config.index_n_heads), dim = at(config.index_head_dim);
  const auto first = at(sequence.first_row), count = at(sequence.length);
  const auto pool0 = at(stored.first_pool[s]), pools = at(stored.first_pool[s + 1]) - pool0;
  LogitOperands operands;
  operands.heads = config.index_n_heads;
  operands.head_dim = config.index_head_dim;
  operands.logit_scale = c.inputs.logit_scale;
  operands.queries =
      std::span(stored.queries.codes).subspan(first * heads * dim, count * heads * dim);
  operands.head_weights = std::span(stored.head_weights).subspan(first * heads, count * heads);
  operands.pools = std::span(stored.pools.codes).subspan(pool0 * dim, pools * dim);
  if (!stored.queries.scales.empty()) {
    operands.query_scales = std::span(stored.queries.scales).subspan(first * heads, count * heads);
  }
  if (!stored.pools.scales.empty()) {
    operands.pool_scales = std::span(stored.pools.scales).subspan(pool0, pools);
  }
  std::vector<std::int64_t> visible;
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    visible.push_back(visible_pools(t, config.index_kpool));
  }
  auto result = logits(operands, visible, f32_any_order(), precision);
  if (!stored.pool_reach.empty()) {
    widen_by_pools(result, operands,
                   std::span(stored.pool_reach).subspan(pool0 * dim, pools * dim));
  }
  return result;
}

void compare_logits(Agreement& result, const Case& c, std::size_t s, const Bounded& bounds) {
  const Tensor& answers = c.expected.at("logits");
  const auto& sequence = c.inputs.sequences[s];
  const std::int64_t columns = bounds.shape[1], width = answers.dim(1);
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    for (std::int64_t p = 0; p < visible_pools(t, c.inputs.config.index_kpool); ++p) {
      const auto i = at(t * columns + p);
      const std::int64_t flat = (sequence.first_row + t) * width + p;
      compare_element(result, answers.at(flat), bounds.value[i], bounds.low[i], bounds.high[i],
                      flat, answers.shape());
    }
  }
}

void compare_selection(Agreement& result, const Case& c, std::size_t s, const Bounded& bounds) {
  const auto& config = c.inputs.config;
  const auto& sequence = c.inputs.sequences[s];
  const auto rows = c.expected.at("selection").as<std::int32_t>();
  const auto width = at(config.selection_width()), columns = at(bounds.shape[1]);
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    const auto visible = at(visible_pools(t, config.index_kpool));
    const auto part = [&](const std::vector<double>& x) {
      return std::span(x).subspan(at(t) * columns, visible);
    };
    const auto row = rows.subspan(at(sequence.first_row + t) * width, width);
    ++result.compared;
    if (selection_decidable(part(bounds.low), part(bounds.high), config.topk_pools())) {
      ++result.decidable;
    }
    const auto own =
        expand(select(part(bounds.value), config.topk_pools()), t, sequence.first_key, config);
    std::vector<std::int32_t> answer(row.begin(), row.end()), mine(own);
    std::ranges::sort(answer);
    std::ranges::sort(mine);
    if (answer != mine) ++result.unequal;
    const auto fault =
        selection_fault(row, part(bounds.low), part(bounds.high), t, sequence.first_key, config);
    if (!fault.empty() && result.outside++ == 0) {
      result.first_fault = fmt::format("sequence {}, token {}: {}", s, t, fault);
    }
  }
}

void compare_projections(std::vector<Agreement>& results, const Case& c, Precision precision) {
  if (!c.projections.present()) return;
  const auto projected = project(c, precision);
  results.push_back(compare("queries", c.inputs.queries, projected.queries));
  results.push_back(compare("keys", c.inputs.keys, projected.keys));
  results.push_back(compare("gate_scores", c.inputs.gate_scores, projected.gate_scores));
  results.push_back(compare("head_weights", c.inputs.head_weights, projected.head_weights));
}

void compare_cache(std::vector<Agreement>& results, const Case& c, const Pooled& pooled,
                   Precision precision) {
  const auto& mode = c.inputs.mode;
  if (c.expected.contains("pooled")) {
    results.push_back(compare("pooled", c.expected.at("pooled"), pooled.pooled));
  }
  if (!mode.quantised()) return;
  if (c.expected.contains("pool_rows")) {
    Bounded judged = pooled.rotated;
    if (mode.hadamard && c.expected.contains("pooled")) {
      judged = rotate<double>(Bounded::exact(c.expected.at("pooled")), mode.pooled);
    }
    compare_quantiser(results, "pool", judged, pooled.rotated, stored_pools(c), mode);
  }
  if (c.expected.contains("q_codes") && c.expected.contains("q_scales")) {
    const auto queries = rotate_queries(c.inputs, precision);
    compare_quantiser(results, "query", queries, queries, stored_queries(c), mode);
  }
}

}  // namespace

std::vector<Agreement> compare_expected(const Case& test_case, Precision precision) {
  std::vector<Agreement> results;
  compare_projections(results, test_case, precision);
  const auto pooled = pool(test_case.inputs, precision);
  compare_cache(results, test_case, pooled, precision);
  const auto stored = stored_operands(test_case, pooled);
  if (!stored.present) return results;
  Agreement logit, selection;
  logit.step = "logits";
  selection.step = "selection";
  for (std::size_t s = 0; s < test_case.inputs.sequences.size(); ++s) {
    if (test_case.inputs.sequences[s].length == 0) continue;
    const auto bounds = sequence_logits(test_case, s, stored, precision);
    if (test_case.expected.contains("logits")) compare_logits(logit, test_case, s, bounds);
    if (test_case.expected.contains("selection"))
      compare_selection(selection, test_case, s, bounds);
  }
  if (test_case.expected.contains("logits")) results.push_back(logit);
  if (test_case.expected.contains("selection")) results.push_back(selection);
  return results;
}

}  // namespace indexpool::reference
