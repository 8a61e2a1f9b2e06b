#include "indexpool/model/step/timing.hpp"

#include <algorithm>

#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/step/collective.hpp"
#include "indexpool/model/step/work.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

OperationTime of_work(const Work& work, const Machine& machine, bool beside) {
  const CostNumbers numbers = predict_numbers(work, machine.device, machine.options);
  if (!beside) return {numbers.time, numbers.low, numbers.high, {}, {}, {}, {}};
  const auto hbm = [&](Corner corner) {
    return Seconds(hbm_seconds(work, machine.device, machine.options, corner));
  };
  const auto matrix = [&](Corner corner) {
    return Seconds(matrix_seconds(work, machine.device, corner));
  };
  return {numbers.time,           numbers.low,          numbers.high,
          hbm(Corner::expected),  hbm(Corner::fastest), matrix(Corner::expected),
          matrix(Corner::fastest)};
}

OperationTime of_range(const WorkRange& range, const Machine& machine, bool beside) {
  OperationTime time = of_work(range.expected, machine, beside);
  if (range.exact) return time;
  const OperationTime least = of_work(range.least, machine, beside),
                      most = of_work(range.most, machine, beside);
  time.low = std::min(time.low, least.low);
  time.high = std::max(time.high, most.high);
  time.hbm_low = std::min(time.hbm_low, least.hbm_low);
  time.matrix_low = std::min(time.matrix_low, least.matrix_low);
  return time;
}

// A product, whose overhead has an interval of its own.
OperationTime of_product(OperationTime time, const Work& work) {
  time.low += work.serial_latency * (least_overhead - 1);
  time.high += work.serial_latency * (most_overhead - 1);
  return time;
}

OperationTime of_measured(const Measured& measured, const Machine& machine) {
  const KernelForm& form = kernel_form(measured.implementation->form);
  const KernelEstimate estimated =
      estimate(*measured.implementation, form, measured.shape, machine.device);
  const Seconds hbm(estimated.parts[Resource::hbm]), matrix(estimated.parts[Resource::matrix]);
  const double fast = estimated.low / estimated.time;
  const CostNumbers launch = launch_beyond_graph(machine);
  return {estimated.time + launch.time,
          estimated.low + launch.low,
          estimated.high + launch.high,
          hbm,
          hbm * fast,
          matrix,
          matrix * fast};
}

}  // namespace

OperationTime& OperationTime::operator+=(const OperationTime& other) {
  time += other.time;
  low += other.low;
  high += other.high;
  hbm += other.hbm;
  hbm_low += other.hbm_low;
  matrix += other.matrix;
  matrix_low += other.matrix_low;
  return *this;
}

OperationTime OperationTime::times(std::int64_t count) const {
  const double n = real(count);
  return {time * n, low * n, high * n, hbm * n, hbm_low * n, matrix * n, matrix_low * n};
}

OperationTime time_of(const Operation& operation, const Size& size, const Machine& machine,
                      bool two_streams, std::span<const Declared> declared) {
  if (const Measured measured = measured_for(operation.shape, size, machine)) {
    return of_measured(measured, machine);
  }
  struct Timer {
    const Size& size;
    const Machine& machine;
    std::span<const Declared> declared;
    bool beside;
    OperationTime operator()(const MatrixProduct& each) const {
      const Work work = work_of(each, size.rows(), machine.device);
      return of_product(of_work(work, machine, beside), work);
    }
    OperationTime operator()(const ExpertProduct& each) const {
      const WorkRange range = work_of(each, size.rows(), machine.device);
      return of_product(of_range(range, machine, beside), range.expected);
    }
    OperationTime operator()(const Stream& each) const {
      return of_work(work_of(each, size), machine, beside);
    }
    OperationTime operator()(const Attention& each) const {
      return of_work(work_of(each, size, machine.device), machine, beside);
    }
    OperationTime operator()(const Recurrence& each) const {
      return of_work(work_of(each, size), machine, beside);
    }
    OperationTime operator()(const Collective& each) const {
      const CostNumbers numbers =
          predict_numbers(each, size.rows(), machine.device, machine.options);
      return {numbers.time, numbers.low, numbers.high, {}, {}, {}, {}};
    }
    OperationTime operator()(const IndexerKernels&) const {
      OperationTime sum;
      for (const Declared& each : declared) {
        if (each.refusal.empty()) sum += of_work(each.work, machine, beside);
      }
      return sum;
    }
  };
  return std::visit(Timer{size, machine, declared, two_streams && operation.section > 0},
                    operation.shape);
}

StepSum sum_of(const Plan& plan, std::span<const OperationTime> times, bool two_streams) {
  require(plan.operations.size() == times.size(), "a plan's operations without their times");
  std::vector<OperationTime> lanes(2 * static_cast<std::size_t>(plan.sections));
  OperationTime alone;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Operation& each = plan.operations[i];
    const bool beside = two_streams && each.section > 0;
    const std::size_t lane = each.lane == Lane::side ? 1 : 0;
    OperationTime& sum =
        beside ? lanes[2 * static_cast<std::size_t>(each.section - 1) + lane] : alone;
    sum += times[i].times(each.count);
  }
  StepSum out{{alone.time, alone.low, alone.high}, {}};
  for (std::size_t i = 0; i < lanes.size(); i += 2) {
    const OperationTime &main = lanes[i], &side = lanes[i + 1];
    const Seconds time =
        std::max({main.time, side.time, main.hbm + side.hbm, main.matrix + side.matrix});
    out.numbers.time += time;
    out.numbers.low += std::max(
        {main.low, side.low, main.hbm_low + side.hbm_low, main.matrix_low + side.matrix_low});
    out.numbers.high += main.high + side.high;
    out.hidden += main.time + side.time - time;
  }
  return out;
}

}  // namespace indexpool::step
