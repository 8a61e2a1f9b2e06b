#include "indexpool/verify/fill.hpp"

namespace indexpool::verify {

void fill_uniform_gates(Draw& draw) {
  fill_normal(draw);
  draw.inputs.gate_scores =
      Tensor(draw.inputs.gate_scores.dtype(), draw.inputs.gate_scores.shape());
  draw.inputs.ape = Tensor(draw.inputs.ape.dtype(), draw.inputs.ape.shape());
}

void fill_one_hot_gates(Draw& draw) {
  fill_normal(draw);
  const Random random = draw.random(choice_stream);
  const std::int64_t kpool = draw.inputs.config.index_kpool;
  set_rows(draw.inputs.gate_scores, [&](std::int64_t row, std::int64_t channel) {
    const std::int64_t first = row - draw.in_pool(row);
    const std::int64_t owner = random.integer(first * draw.head_dim() + channel, 0, kpool - 1);
    // exp(-120 - ape) is 0 in f32 next to 1.
    return draw.in_pool(row) == owner ? 60.0 : -60.0;
  });
}

void fill_extreme_gates(Draw& draw) {
  fill_normal(draw);
  // 88 and 40: exp overflows f32 beyond 88.7; exp(-40) is below the last bit of 1. 1e4: far out.
  static constexpr double extremes[] = {40, -40, 88, -88, 1e4, -1e4, 0};
  const Random random = draw.random(gates_stream);
  set_rows(draw.inputs.gate_scores, [&](std::int64_t row, std::int64_t channel) {
    return extremes[random.integer(row * draw.head_dim() + channel, 0, 6)];
  });
}

void fill_shifted_gates(Draw& draw) {
  fill_normal(draw);
  static constexpr double offsets[] = {-200, -100, 100, 200};
  const Random gates = draw.random(gates_stream), choice = draw.random(choice_stream);
  set_rows(draw.inputs.gate_scores, [&](std::int64_t row, std::int64_t channel) {
    const std::int64_t first = row - draw.in_pool(row);
    const double offset = offsets[choice.integer(first * draw.head_dim() + channel, 0, 3)];
    return offset + gates.normal(row * draw.head_dim() + channel);
  });
}

}  // namespace indexpool::verify
