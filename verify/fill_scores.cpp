#include <algorithm>
#include <cmath>

#include "indexpool/verify/fill.hpp"

namespace indexpool::verify {
namespace {

// Scales the keys of a normal fill by `factor(row)`, and makes queries alike, so that the factor
// orders the scores.
template <class Factor>
void scale_keys(Draw& draw, const Factor& factor) {
  fill_normal(draw);
  IndexerInputs& in = draw.inputs;
  const Random keys = draw.random(keys_stream), queries = draw.random(queries_stream);
  const Random heads = draw.random(head_weights_stream);
  set_rows(in.keys, [&](std::int64_t row, std::int64_t channel) {
    return factor(row) * (1 + 0.125 * keys.normal(row * draw.head_dim() + channel));
  });
  set_rows(in.queries, [&](std::int64_t, std::int64_t column) {
    return 1 + 0.25 * queries.normal(column % draw.head_dim());
  });
  set_rows(in.head_weights,
           [&](std::int64_t, std::int64_t head) { return 0.5 + heads.uniform(head); });
}

// The pools of a sequence repeat with this period.
constexpr std::int64_t tie_period = 3;

}  // namespace

void fill_ties(Draw& draw) {
  fill_normal(draw);
  const Random keys = draw.random(keys_stream), gates = draw.random(gates_stream);
  const std::int64_t kpool = draw.inputs.config.index_kpool;
  const auto source = [&](std::int64_t row, std::int64_t channel) {
    const std::int64_t token = draw.pool(row) % tie_period * kpool + draw.in_pool(row);
    return token * draw.head_dim() + channel;
  };
  set_rows(draw.inputs.keys,
           [&](std::int64_t row, std::int64_t c) { return keys.normal(source(row, c)); });
  set_rows(draw.inputs.gate_scores,
           [&](std::int64_t row, std::int64_t c) { return gates.normal(source(row, c)); });
}

void fill_all_zero_logits(Draw& draw) {
  fill_normal(draw);
  // All keys positive and all queries negative; a rotation keeps the dot products.
  const auto make_sign = [](Tensor& tensor, double sign) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, sign * (1 + 0.125 * std::abs(tensor.at(i))));
    }
  };
  make_sign(draw.inputs.keys, 1);
  make_sign(draw.inputs.queries, -1);
}

void fill_relu_plateau(Draw& draw) {
  fill_all_zero_logits(draw);
  const Random choice = draw.random(choice_stream);
  set_rows(draw.inputs.keys, [&](std::int64_t row, std::int64_t channel) {
    const double key = draw.inputs.keys.at(row * draw.head_dim() + channel);
    return choice.integer(row - draw.in_pool(row), 0, 7) == 0 ? -key : key;  // one pool in eight
  });
}

void fill_monotone(Draw& draw) {
  const double rows = static_cast<double>(std::max<std::int64_t>(draw.inputs.rows(), 1));
  scale_keys(draw, [&](std::int64_t row) {
    return 1 + 7 * static_cast<double>(draw.position[static_cast<std::size_t>(row)]) / rows;
  });
}

void fill_sawtooth(Draw& draw) {
  constexpr std::int64_t period = 64;  // pools of a page
  scale_keys(draw, [&](std::int64_t row) {
    return 1 + static_cast<double>(draw.pool(row) % period) / 16;
  });
}

void fill_power_law(Draw& draw) {
  const Random choice = draw.random(choice_stream);
  scale_keys(draw, [&](std::int64_t row) {
    return 64.0 / static_cast<double>(1 + choice.integer(row - draw.in_pool(row), 0, 255));
  });
}

void fill_attention_sink(Draw& draw) {
  fill_normal(draw);
  Tensor& keys = draw.inputs.keys;
  set_rows(keys, [&](std::int64_t row, std::int64_t channel) {
    const double key = keys.at(row * draw.head_dim() + channel);
    return draw.position[static_cast<std::size_t>(row)] == 0 ? 30 * key : key;
  });
}

void fill_ar1(Draw& draw) {
  fill_normal(draw);
  constexpr double memory = 0.9375, noise = 0.34798;  // sqrt(1 - memory^2): variance stays 1
  const auto smooth = [&](Tensor& tensor) {
    for (std::int64_t row = 1; row < draw.inputs.rows(); ++row) {
      if (draw.position[static_cast<std::size_t>(row)] == 0) continue;
      for (std::int64_t channel = 0; channel < draw.head_dim(); ++channel) {
        const std::int64_t i = row * draw.head_dim() + channel;
        tensor.set(i, memory * tensor.at(i - draw.head_dim()) + noise * tensor.at(i));
      }
    }
  };
  smooth(draw.inputs.keys);
  smooth(draw.inputs.gate_scores);
}

}  // namespace indexpool::verify
