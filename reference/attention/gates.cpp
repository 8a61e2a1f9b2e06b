// The safe gate of linear attention, and the gate that mixes two branches.
#include "indexpool/reference/attention/scores.hpp"

namespace indexpool::reference {
namespace {

template <class T>
void store(Bounded& target, std::int64_t index, const Enclosed<T>& x) {
  const auto i = static_cast<std::size_t>(index);
  target.value[i] = to_double(x.value);
  target.low[i] = std::min(double_below(x.low), target.value[i]);
  target.high[i] = std::max(double_above(x.high), target.value[i]);
}

template <class T>
Enclosed<T> log_decay(const T& feature, const T& a_log, const T& bias) {
  using std::abs;
  using std::exp;
  const T steepness = exp(a_log), argument = steepness * (feature + bias);
  const T eta = u32 * (argument_roundings * abs(a_log) + 2 * exp_ulps);
  // Sum and product; one more for second-order terms.
  const T error = abs(argument) * (eta + T(gamma(3))) + T(2 * f32_subnormal) * (1 + steepness);
  const auto gate = sigmoid_in_f32(argument, error);
  const T floor = safe_gate_floor;
  const auto clipped = [&](const T& x) { return x < floor ? floor : x > 0 ? T(0) : x; };
  return {floor * gate.value, clipped(T(floor * gate.high * T(1 + gamma(1)))),
          clipped(T(floor * gate.low * T(1 - gamma(1))) + T(f32_subnormal))};
}

template <class T>
Bounded safe_gate_in(const SafeGateInputs& in) {
  const std::int64_t heads = in.features.dim(1), keys = in.features.dim(2);
  Bounded result(in.features.shape());
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t head = i / keys % heads;
    store(result, i,
          log_decay<T>(T(in.features.at(i)), T(in.a_log.at(head)),
                       T(in.dt_bias.at(head * keys + i % keys))));
  }
  return result;
}

// g a + (1 - g) b or b + g (a - b): a wrong g counts with |a - b|, roundings with the terms.
template <class T>
Enclosed<T> mixed(const T& logit, const T& a, const T& b) {
  using std::abs;
  if (logit >= T(gate_saturation)) return {a, a, a};
  if (logit <= T(-gate_saturation)) return {b, b, b};
  const auto gate = sigmoid_in_f32(logit, T(0));
  const T value = b + gate.value * (a - b), apart = abs(T(a - b));
  const T off = std::max(T(gate.high - gate.value), T(gate.value - gate.low)) * apart;
  const T terms = gate.high * abs(a) + (1 - gate.low) * abs(b) + gate.high * apart + off;
  const T error = off + T(gamma(4) + 8 * epsilon<T>()) * terms + T(4 * f32_subnormal);
  if (!(terms < T(0x1p126))) return open_around(value);
  return {value, value - error, value + error};
}

template <class T>
Bounded gate_fusion_in(const GateFusionInputs& in) {
  const std::int64_t values = in.a.dim(2);
  Bounded result(in.a.shape());
  for (std::int64_t i = 0; i < result.size(); ++i)
    store(result, i, mixed<T>(T(in.gate_logits.at(i / values)), T(in.a.at(i)), T(in.b.at(i))));
  return result;
}

}  // namespace

Bounded safe_gate(const SafeGateInputs& inputs, Precision precision) {
  validate(inputs);
  return precision == Precision::binary64 ? safe_gate_in<double>(inputs)
                                          : safe_gate_in<Quad>(inputs);
}

Bounded gate_fusion(const GateFusionInputs& inputs, Precision precision) {
  validate(inputs);
  return precision == Precision::binary64 ? gate_fusion_in<double>(inputs)
                                          : gate_fusion_in<Quad>(inputs);
}

}  // namespace indexpool::reference
