#include "indexpool/verify/strategies/asynchronous.hpp"

#include <algorithm>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/strategies/latency.hpp"

namespace indexpool::verify::strategies {
namespace {

Seconds larger(Seconds a, Seconds b) { return std::max(a, b); }

// Of the attention's layers together; what the plan has of pooling is left out.
Lane attention_of(const step::StepForecast& forecast) {
  Lane lane;
  for (const step::OperationForecast& each : forecast.operations) {
    if (each.group != "attention" && each.group != "attention over caches") continue;
    if (each.name == "norms, pooling, cache store") continue;
    lane.alone.time += each.time;
    lane.alone.low += each.low;
    lane.alone.high += each.high;
    const double runs = static_cast<double>(each.count);
    for (const CostTerm& term : each.prediction.terms) {
      if (term.name == "hbm") {
        lane.hbm += term.time * runs;
        lane.hbm_low += term.low * runs;
      } else if (term.name == "matrix") {
        lane.matrix += term.time * runs;
        lane.matrix_low += term.low * runs;
      }
    }
  }
  return lane;
}

Lane pooling_of(const PoolingShape& shape, const DeviceSpec& device, const CostOptions& options) {
  Lane lane;
  for (const Work& work : work_of(shape)) {
    const CostNumbers one = predict_numbers(work, device, options);
    lane.alone.time += one.time;
    lane.alone.low += one.low;
    lane.alone.high += one.high;
    const CostTerm hbm = hbm_term(work, device, options), matrix = matrix_term(work, device);
    lane.hbm += hbm.time;
    lane.hbm_low += hbm.low;
    lane.matrix += matrix.time;
    lane.matrix_low += matrix.low;
  }
  return lane;
}

Lane divided(Lane lane, std::int64_t by) {
  const double share = 1 / static_cast<double>(by);
  for (Seconds* each : {&lane.alone.time, &lane.alone.low, &lane.alone.high, &lane.hbm,
                        &lane.hbm_low, &lane.matrix, &lane.matrix_low})
    *each = *each * share;
  return lane;
}

}  // namespace

Overhead after_each_other(const Lane& main, const Lane& side) {
  return {side.alone.time / main.alone.time, side.alone.low / main.alone.high,
          side.alone.high / main.alone.low};
}

Overhead beside_each_other(const Lane& main, const Lane& side) {
  const Seconds both = larger(larger(main.alone.time, side.alone.time),
                              larger(main.hbm + side.hbm, main.matrix + side.matrix));
  const Seconds fastest =
      larger(larger(main.alone.low, side.alone.low),
             larger(main.hbm_low + side.hbm_low, main.matrix_low + side.matrix_low));
  return {(both - main.alone.time) / main.alone.time, (fastest - main.alone.low) / main.alone.high,
          side.alone.high / main.alone.low};
}

Overlap overlap(const OverlapOptions& options) {
  const Architecture model = load_model(options.model);
  const DeviceSpec device = load_device(options.device);
  MemoryRequest request;
  request.tokens = options.tokens;
  request.sequences = options.sequences;
  request.tensor_parallel = options.gpus;
  const step::Serving serving{request, options.phase};
  const step::Size size = step::size_of(serving, options.tokens, options.sequences);
  step::StepOptions how;
  how.measured = false;  // measured rows have no terms to share
  how.graph_launch = options.phase == step::Phase::decode;
  const step::StepForecast forecast =
      step::predict_step(model, device, serving, size, step::IndexerWork{}, how);

  Overlap out;
  out.options = options;
  out.rows = size.rows();
  out.layers = std::count_if(model.layers.begin(), model.layers.end(), [](const LayerSpec& layer) {
    return layer.attention == AttentionKind::pooled_form;
  });
  require(out.layers > 0, "a model with layers of a published pooled form");
  const std::int64_t heads = std::max<std::int64_t>(1, model.form.heads / options.gpus);
  const PoolingShape shape{"gated", out.rows * heads, model.form.vectors, model.form.dim,
                           heads,   out.rows,         model.hidden_size,  true};
  out.layer = divided(attention_of(forecast), out.layers);
  out.pooling = pooling_of(shape, device, {.warm_l2 = false, .graph_launch = how.graph_launch});
  out.one_stream = after_each_other(out.layer, out.pooling);
  out.two_streams = beside_each_other(out.layer, out.pooling);
  out.step = forecast.time;
  const double of_step = out.layer.alone.time / forecast.time * static_cast<double>(out.layers);
  out.one_of_step = out.one_stream.value * of_step;
  out.two_of_step = out.two_streams.value * of_step;
  return out;
}

}  // namespace indexpool::verify::strategies
