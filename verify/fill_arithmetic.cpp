#include <cmath>

#include "indexpool/verify/fill.hpp"

namespace indexpool::verify {
namespace {

// Standard normal values into `tensor`, times `deviation`.
void set_normal(Tensor& tensor, const Random& random, double deviation) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, random.normal(i) * deviation);
}

void set_integers(Tensor& tensor, const Random& random, std::int64_t low, std::int64_t high) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    tensor.set(i, static_cast<double>(random.integer(i, low, high)));
  }
}

double signed_power(const Random& random, std::int64_t index, std::int64_t low, std::int64_t high) {
  const double magnitude = std::ldexp(1.0, static_cast<int>(random.integer(index, low, high)));
  return (random.bits(index) >> 63) != 0 ? -magnitude : magnitude;
}

}  // namespace

void fill_normal(Draw& draw) {
  IndexerInputs& in = draw.inputs;
  set_normal(in.keys, draw.random(keys_stream), 1);
  set_normal(in.gate_scores, draw.random(gates_stream), 1);
  set_normal(in.ape, draw.random(ape_stream), 0.5);
  set_normal(in.queries, draw.random(queries_stream), 1);
  set_normal(in.head_weights, draw.random(head_weights_stream), 1);
}

void fill_small_integers(Draw& draw) {
  IndexerInputs& in = draw.inputs;
  set_integers(in.keys, draw.random(keys_stream), -4, 4);
  set_integers(in.queries, draw.random(queries_stream), -2, 2);
  set_integers(in.head_weights, draw.random(head_weights_stream), -2, 2);
  // Gates and ape stay 0: the weights are 1 / kpool, exact when kpool is a power of two.
}

void fill_zeros_and_ones(Draw& draw) {
  IndexerInputs& in = draw.inputs;
  set_integers(in.keys, draw.random(keys_stream), 0, 1);
  set_integers(in.gate_scores, draw.random(gates_stream), 0, 1);
  set_integers(in.queries, draw.random(queries_stream), 0, 1);
  set_integers(in.head_weights, draw.random(head_weights_stream), 0, 1);
}

void fill_powers_of_two(Draw& draw) {
  IndexerInputs& in = draw.inputs;
  const Random keys = draw.random(keys_stream), queries = draw.random(queries_stream);
  const Random heads = draw.random(head_weights_stream);
  set_rows(in.keys, [&](std::int64_t row, std::int64_t channel) {
    return signed_power(keys, row * draw.head_dim() + channel, -6, 6);
  });
  set_integers(in.gate_scores, draw.random(gates_stream), -3, 3);
  for (std::int64_t i = 0; i < in.queries.size(); ++i) {
    in.queries.set(i, signed_power(queries, i, -3, 3));
  }
  for (std::int64_t i = 0; i < in.head_weights.size(); ++i) {
    in.head_weights.set(i, signed_power(heads, i, -2, 2));
  }
}

void fill_log_uniform(Draw& draw) {
  fill_normal(draw);
  const Random keys = draw.random(keys_stream);
  Tensor& tensor = draw.inputs.keys;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    // Up to 2^15: within f16.
    tensor.set(i, signed_power(keys, i, -20, 13) * (1 + keys.uniform(~i)));
  }
}

void fill_cancellation(Draw& draw) {
  fill_normal(draw);
  draw.inputs.gate_scores =
      Tensor(draw.inputs.gate_scores.dtype(), draw.inputs.gate_scores.shape());
  draw.inputs.ape = Tensor(draw.inputs.ape.dtype(), draw.inputs.ape.shape());
  const Random random = draw.random(keys_stream);
  set_rows(draw.inputs.keys, [&](std::int64_t row, std::int64_t channel) {
    // Tokens in pairs: v and -v (1 + 2^-7), the smallest bf16 step apart.
    const std::int64_t first = row - draw.in_pool(row) % 2;
    const double value = random.normal(first * draw.head_dim() + channel);
    return first == row ? value : -value * (1 + 0x1p-7);
  });
}

void fill_constant(Draw& draw) {
  fill_normal(draw);
  const Random random = draw.random(keys_stream);
  set_rows(draw.inputs.keys,
           [&](std::int64_t, std::int64_t channel) { return random.normal(channel); });
}

void fill_alternating(Draw& draw) {
  fill_normal(draw);
  const Random random = draw.random(keys_stream);
  set_rows(draw.inputs.keys, [&](std::int64_t row, std::int64_t channel) {
    const bool odd = draw.position[static_cast<std::size_t>(row)] % 2 != 0;
    return random.normal(odd ? draw.head_dim() + channel : channel);
  });
}

}  // namespace indexpool::verify
