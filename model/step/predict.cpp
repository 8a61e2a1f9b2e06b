#include "indexpool/model/step/predict.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "indexpool/model/step/collective.hpp"
#include "indexpool/model/step/timing.hpp"
#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// The expected work's prediction whose ends are those of the least and most work.
Prediction predict_range(const WorkRange& range, const Machine& machine) {
  Prediction out = predict(range.expected, machine.device, machine.options);
  if (range.exact) return out;
  const Prediction least = predict(range.least, machine.device, machine.options);
  const Prediction most = predict(range.most, machine.device, machine.options);
  out.low = std::min(out.low, least.low);
  out.high = std::max(out.high, most.high);
  for (CostTerm& term : out.terms) {
    for (const CostTerm& other : least.terms) {
      if (other.name == term.name) term.low = std::min(term.low, other.low);
    }
    for (const CostTerm& other : most.terms) {
      if (other.name == term.name) term.high = std::max(term.high, other.high);
    }
  }
  return out;
}

Prediction prediction_of(const Shape& shape, const Size& size, const Machine& machine) {
  struct Predictor {
    const Size& size;
    const Machine& machine;
    Prediction of(const Work& work) const { return predict(work, machine.device, machine.options); }
    static Prediction of_product(Prediction prediction, const Work& work) {
      prediction.low += work.serial_latency * (least_overhead - 1);
      prediction.high += work.serial_latency * (most_overhead - 1);
      for (CostTerm& term : prediction.terms) {
        if (term.name != "serial") continue;
        term.low = work.serial_latency * least_overhead;
        term.high = work.serial_latency * most_overhead;
        term.source = product_overhead_source;
      }
      return prediction;
    }
    Prediction operator()(const MatrixProduct& each) const {
      const Work work = work_of(each, size.rows(), machine.device);
      return of_product(of(work), work);
    }
    Prediction operator()(const ExpertProduct& each) const {
      const WorkRange range = work_of(each, size.rows(), machine.device);
      return of_product(predict_range(range, machine), range.expected);
    }
    Prediction operator()(const Stream& each) const { return of(work_of(each, size)); }
    Prediction operator()(const Attention& each) const {
      return of(work_of(each, size, machine.device));
    }
    Prediction operator()(const Recurrence& each) const { return of(work_of(each, size)); }
    Prediction operator()(const Collective& each) const {
      return predict(each, size.rows(), machine.device, machine.options);
    }
    Prediction operator()(const IndexerKernels&) const { return {}; }
  };
  return std::visit(Predictor{size, machine}, shape);
}

// A measured form's resource under the name of the cost model's term.
std::string limit_name(const std::string& resource) {
  if (resource == to_string(Resource::hbm)) return "hbm";
  if (resource == to_string(Resource::l2)) return "l2";
  if (resource == to_string(Resource::matrix)) return "matrix";
  return resource;
}

class Forecaster {
 public:
  Forecaster(const Machine& machine, StepForecast& out) : machine_(machine), out_(out) {}

  void add(const Operation& operation, const Size& size, const std::vector<Declared>& declared) {
    if (std::holds_alternative<IndexerKernels>(operation.shape)) {
      for (const Declared& each : declared) add_declared(operation, each);
      return;
    }
    OperationForecast next = begun(operation);
    next.detail = text_of(operation.shape, size, machine_.device);
    next.reads = read_bytes(operation.shape, size);
    const Measured measured = measured_for(operation.shape, size, machine_);
    if (measured) {
      next.prediction =
          explain(*measured.set, *measured.implementation, measured.shape, machine_.device);
      next.prediction.hbm_bytes = hbm_of(operation.shape, size);
      next.prediction.bound_by = limit_name(next.prediction.bound_by);
      add_launch(next.prediction);
      next.kernel = measured.implementation->kernel;
      next.source = "measured: " + measured.set->name;
    } else {
      next.prediction = prediction_of(operation.shape, size, machine_);
    }
    finish(std::move(next));
  }

 private:
  OperationForecast begun(const Operation& operation) const {
    OperationForecast next;
    next.group = operation.group;
    next.name = operation.name;
    next.count = operation.count;
    next.lane = operation.lane;
    next.source = operation.source;
    return next;
  }

  // Measured in a graph, launched in a stream.
  void add_launch(Prediction& prediction) const {
    const CostNumbers more = launch_beyond_graph(machine_);
    if (more.high.value == 0) return;
    prediction.time += more.time;
    prediction.low += more.low;
    prediction.high += more.high;
    prediction.terms.push_back({"stream launch", more.time, more.low, more.high,
                                "launch in a stream - launch in a graph",
                                machine_.device.launch_s.source});
  }

  void add_declared(const Operation& operation, const Declared& each) {
    OperationForecast next = begun(operation);
    next.name = each.name;
    next.kernel = each.kernel;
    next.refusal = each.refusal;
    next.source = "declared by the kernel";
    next.reads.cache = each.cache;
    next.detail = each.refusal.empty() ? fmt::format("{} blocks of {} threads", each.work.blocks,
                                                     each.work.threads_per_block)
                                       : each.refusal;
    if (each.refusal.empty()) {
      next.prediction = predict(each.work, machine_.device, machine_.options);
    } else {
      out_.complete = false;
    }
    finish(std::move(next));
  }

  // What a measured product or attention moves when each byte passes once.
  Bytes hbm_of(const Shape& shape, const Size& size) const {
    return prediction_of(shape, size, machine_).hbm_bytes;
  }

  void finish(OperationForecast next) {
    const double count = real(next.count);
    next.time = next.prediction.time * count;
    next.low = next.prediction.low * count;
    next.high = next.prediction.high * count;
    const auto add = [count](Bytes& sum, Bytes bytes) {
      const double total = real(sum.value) + count * real(bytes.value);
      constexpr double limit = 0x1p62;  // a sum beyond stays there
      sum = total < limit ? Bytes(sum.value + bytes.value * static_cast<std::int64_t>(count))
                          : Bytes(std::numeric_limits<std::int64_t>::max());
    };
    add(out_.reads.parameters, next.reads.parameters);
    add(out_.reads.cache, next.reads.cache);
    add(out_.hbm_bytes, next.prediction.hbm_bytes);
    out_.operations.push_back(std::move(next));
  }

  const Machine& machine_;
  StepForecast& out_;
};

// The limit of the operations that take most of the time together.
std::string limit_of(const std::vector<OperationForecast>& operations) {
  std::map<std::string, double> shares;
  for (const OperationForecast& each : operations) {
    shares[each.prediction.bound_by] += each.time.value;
  }
  const auto most = std::max_element(
      shares.begin(), shares.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == shares.end() ? "" : most->first;
}

}  // namespace

double StepForecast::tokens_per_s() const {
  const std::int64_t tokens = phase == Phase::decode ? size.sequences : size.rows();
  return time.value > 0 ? real(tokens) / time.value : 0;
}

StepForecast predict_step(const Architecture& architecture, const DeviceSpec& device,
                          const Serving& serving, const Size& size, const IndexerWork& indexer,
                          const StepOptions& options) {
  const Plan plan = plan_step(architecture, serving);
  const Machine machine(device, options);
  const Size one_row = drafting_size(size);
  std::vector<Declared> declared, drafting;
  if (plan.has_indexer && indexer) {
    indexer(on_one_rank(serving, size), declared);
    if (serving.request.drafts > 0) indexer(on_one_rank(serving, one_row), drafting);
  }
  StepForecast out;
  out.size = size;
  out.phase = serving.phase;
  Forecaster forecaster(machine, out);
  std::vector<OperationTime> times;
  for (const Operation& each : plan.operations) {
    const Size& rows = each.of_sequences ? one_row : size;
    forecaster.add(each, rows, each.of_sequences ? drafting : declared);
    times.push_back(
        time_of(each, rows, machine, options.two_streams, each.of_sequences ? drafting : declared));
  }
  const StepSum sum = sum_of(plan, times, options.two_streams);
  out.time = sum.numbers.time;
  out.low = sum.numbers.low;
  out.high = sum.numbers.high;
  out.hidden = sum.hidden;
  out.bound_by = limit_of(out.operations);
  return out;
}

}  // namespace indexpool::step
