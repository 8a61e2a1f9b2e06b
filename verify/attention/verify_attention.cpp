#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/attention/layers.hpp"

namespace indexpool::verify::attention {

std::vector<float> handed_on(std::span<const float> stored, const reference::Bounded& expected,
                             const Verdict& verdict) {
  std::vector<float> values;
  const bool take = usable(verdict) && stored.size() == expected.value.size();
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    const bool open = reference::is_open(expected.low[i], expected.high[i]);
    const float x = take && !open ? stored[i] : static_cast<float>(expected.value[i]);
    values.push_back(std::isfinite(x) ? x : 0);
  }
  return values;
}

Tensor as_tensor(std::span<const float> values, Shape shape) {
  Tensor tensor(DType::f32, std::move(shape));
  require(static_cast<std::size_t>(tensor.size()) == values.size(), "as many values as elements");
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

std::vector<Record> verify_attention(const Problem& problem, const Options& options) {
  indexpool::validate(problem, "problem");
  Judge judge{problem, options, {}};
  if (options.progress) options.progress(describe(problem));
  struct Layer {
    std::string_view name;
    void (*verify)(Judge& judge);
  };
  static constexpr Layer layers[] = {
      {"hybrid", verify_hybrid}, {"composite", verify_composite}, {"feedback", verify_feedback}};
  for (const Layer& layer : layers) {
    if (layer.name == problem.attention) layer.verify(judge);
  }
  for (const Record& record : judge.records)
    require(!record.op.empty(), "a record names its operation");
  return std::move(judge.records);
}

}  // namespace indexpool::verify::attention
