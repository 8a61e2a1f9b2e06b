// Named families of inputs. Each attacks one property; a new one is a function and a row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify {

// What a fill writes into: shapes, dtypes and sequences are set, every tensor is zero.
struct Draw {
  IndexerInputs& inputs;
  std::uint64_t seed = 1;
  std::vector<std::int64_t> position;  // of each row in its sequence

  Random random(std::uint64_t stream) const { return {seed, stream}; }
  std::int64_t head_dim() const { return inputs.config.index_head_dim; }
  std::int64_t pool(std::int64_t row) const {
    return position[static_cast<std::size_t>(row)] / inputs.config.index_kpool;
  }
  std::int64_t in_pool(std::int64_t row) const {
    return position[static_cast<std::size_t>(row)] % inputs.config.index_kpool;
  }
};

struct Fill {
  std::string_view name, purpose;
  bool about_ties = false;  // rows need not be decidable, logits may all be zero
  void (*fill)(Draw& draw);
};

std::span<const Fill> fills();
const Fill& find_fill(std::string_view name);  // ConfigError with near names

// Streams of random numbers, one per tensor.
inline constexpr std::uint64_t keys_stream = 1, gates_stream = 2, ape_stream = 3,
                               queries_stream = 4, head_weights_stream = 5, choice_stream = 6;

// tensor[row, column] = value(row, column); rows are the first axis, columns the rest.
template <class Value>
void set_rows(Tensor& tensor, const Value& value) {
  if (tensor.empty()) return;
  const std::int64_t rows = tensor.dim(0), columns = tensor.size() / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      tensor.set(row * columns + column, value(row, column));
    }
  }
}

// --- arithmetic: values whose sums are exact, or as inexact as they get ---
void fill_normal(Draw& draw);
void fill_small_integers(Draw& draw);
void fill_zeros_and_ones(Draw& draw);
void fill_powers_of_two(Draw& draw);
void fill_log_uniform(Draw& draw);
void fill_cancellation(Draw& draw);
void fill_constant(Draw& draw);
void fill_alternating(Draw& draw);
// --- gates: what the softmax must survive ---
void fill_uniform_gates(Draw& draw);
void fill_one_hot_gates(Draw& draw);
void fill_extreme_gates(Draw& draw);
void fill_shifted_gates(Draw& draw);
// --- scores: how the logits are ordered ---
void fill_ties(Draw& draw);
void fill_all_zero_logits(Draw& draw);
void fill_relu_plateau(Draw& draw);
void fill_monotone(Draw& draw);
void fill_sawtooth(Draw& draw);
void fill_power_law(Draw& draw);
void fill_attention_sink(Draw& draw);
void fill_ar1(Draw& draw);
// --- range: what the quantiser must survive ---
void fill_outlier_channel(Draw& draw);
void fill_massive(Draw& draw);
void fill_near_overflow(Draw& draw);
void fill_tiny(Draw& draw);
void fill_subnormal(Draw& draw);
void fill_signed_zeros(Draw& draw);
void fill_amax_edge(Draw& draw);
void fill_e4m3_midpoints(Draw& draw);

}  // namespace indexpool::verify
