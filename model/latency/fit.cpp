#include "indexpool/model/latency/fit.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <Eigen/Dense>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// Errors beyond 6 % count by their distance: tables hold a few rows of other code paths.
constexpr double outlier = 0.06;
constexpr double difference = 1e-4;  // of a logarithm, for derivatives
constexpr int most_steps = 60;
// Weight of a constant's distance (in e-folds) from its start: enough to keep one that no row
// depends on where it was, too little to move one that rows do determine.
constexpr double prior = 1e-5;
constexpr double normal_95 = 1.645;

struct Problem {
  const KernelForm& form;
  const DeviceSpec& device;
  std::vector<const TimedRow*> rows;
  std::vector<std::size_t> free;  // which constants are fitted
  std::vector<double> at;         // all constants
  const std::function<void()>& advance;

  // log(predicted / measured) of every row, the free constants being exp(x) inside their range.
  VectorXd residuals(const VectorXd& x) {
    set(x);
    VectorXd out(static_cast<Eigen::Index>(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] =
          std::log(form.time(rows[i]->shape, device, at).time / rows[i]->time.value);
    }
    return out;
  }
  void set(const VectorXd& x) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      const FormConstant& constant = form.constants[free[i]];
      at[free[i]] =
          std::clamp(std::exp(x[static_cast<Eigen::Index>(i)]), constant.least, constant.most);
    }
  }
  VectorXd clamped(VectorXd x) const {
    for (std::size_t i = 0; i < free.size(); ++i) {
      const FormConstant& constant = form.constants[free[i]];
      double& value = x[static_cast<Eigen::Index>(i)];
      value = std::clamp(value, std::log(constant.least), std::log(constant.most));
    }
    return x;
  }
};

double loss(const VectorXd& residuals) {
  const Eigen::ArrayXd scaled = (residuals.array() / outlier).square();
  return (2 * outlier * outlier * ((1 + scaled).sqrt() - 1)).mean();
}
VectorXd weights(const VectorXd& residuals) {
  return (1 + (residuals.array() / outlier).square()).rsqrt().matrix();
}

MatrixXd derivatives(Problem& problem, const VectorXd& x, const VectorXd& residuals) {
  MatrixXd out(residuals.size(), x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    VectorXd moved = x;
    const FormConstant& constant =
        problem.form.constants[problem.free[static_cast<std::size_t>(j)]];
    const double step = x[j] + difference > std::log(constant.most) ? -difference : difference;
    moved[j] += step;
    out.col(j) = (problem.residuals(moved) - residuals) / step;
  }
  return out;
}

struct Optimum {
  VectorXd x;
  double cost = 0;
};

double with_prior(double mean_loss, const VectorXd& x, const VectorXd& start) {
  return mean_loss + prior * (x - start).squaredNorm();
}

// Levenberg and Marquardt's method, weights renewed at each step.
Optimum descend(Problem& problem, const VectorXd& start) {
  VectorXd x = start, residuals = problem.residuals(start);
  const double rows = static_cast<double>(residuals.size());
  double cost = loss(residuals), damping = 1e-2;
  int still = 0;
  for (int step = 0; step < most_steps && still < 3 && damping < 1e9; ++step) {
    const MatrixXd slope = derivatives(problem, x, residuals);
    const VectorXd weight = weights(residuals);
    MatrixXd normal = slope.transpose() * weight.asDiagonal() * slope;
    normal.diagonal().array() += prior * rows;
    const VectorXd gradient =
        slope.transpose() * weight.asDiagonal() * residuals + prior * rows * (x - start);
    if (problem.advance) problem.advance();
    while (damping < 1e9) {
      MatrixXd damped = normal;
      damped.diagonal() += damping * (normal.diagonal().array() + 1e-9).matrix();
      VectorXd move = -damped.ldlt().solve(gradient);
      move = move.cwiseMin(1.0).cwiseMax(-1.0);  // no constant by more than e at a time
      const VectorXd next = problem.clamped(x + move);
      const VectorXd next_residuals = problem.residuals(next);
      const double next_cost = with_prior(loss(next_residuals), next, start);
      if (!(next_cost < cost)) {
        damping *= 4;
        continue;
      }
      still = next_cost > cost * (1 - 1e-4) ? still + 1 : 0;
      x = next;
      residuals = next_residuals;
      cost = next_cost;
      damping = std::max(damping / 6, 1e-9);
      break;
    }
  }
  return {x, cost};
}

// 90 % intervals from the curvature, the spread of the residuals taken as their noise.
void add_intervals(Problem& problem, const Optimum& best, std::vector<FittedConstant>& constants) {
  const VectorXd residuals = problem.residuals(best.x);
  const MatrixXd slope = derivatives(problem, best.x, residuals);
  const VectorXd weight = weights(residuals);
  MatrixXd normal = slope.transpose() * weight.asDiagonal() * slope;
  const double rows = static_cast<double>(residuals.size());
  const double noise = (weight.array() * residuals.array().square()).sum() /
                       std::max(1.0, rows - static_cast<double>(best.x.size()));
  const VectorXd diagonal = normal.diagonal();
  normal.diagonal().array() += 1e-9 * rows;  // keeps what no row determines invertible
  const MatrixXd inverse = normal.ldlt().solve(MatrixXd::Identity(normal.rows(), normal.cols()));
  for (Eigen::Index i = 0; i < best.x.size(); ++i) {
    const std::size_t which = problem.free[static_cast<std::size_t>(i)];
    const FormConstant& range = problem.form.constants[which];
    FittedConstant& constant = constants[which];
    const double deviation = std::sqrt(std::max(0.0, noise * inverse(i, i)));
    constant.determined = diagonal[i] > 1e-6 * rows && deviation < 1;
    const double width = std::exp(normal_95 * std::min(deviation, 50.0));
    constant.low =
        constant.determined ? std::max(range.least, constant.value / width) : range.least;
    constant.high = constant.determined ? std::min(range.most, constant.value * width) : range.most;
    constant.low = std::min(constant.low, constant.value);
    constant.high = std::max(constant.high, constant.value);
  }
}

// All combinations of the values to try, each as the constants to start from.
std::vector<std::vector<double>> starts(const KernelForm& form) {
  std::vector<std::vector<double>> all(1);
  for (const FormConstant& constant : form.constants) {
    std::vector<double> values(constant.tried.begin(), constant.tried.end());
    if (values.empty()) values.push_back(constant.start);
    std::vector<std::vector<double>> longer;
    for (const std::vector<double>& start : all) {
      for (const double value : values) {
        longer.push_back(start);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<const TimedRow*> thinned(std::span<const TimedRow* const> rows) {
  if (rows.size() <= most_fit_rows) return {rows.begin(), rows.end()};
  std::vector<const TimedRow*> out;
  for (std::size_t i = 0; i < most_fit_rows; ++i) {
    out.push_back(rows[i * rows.size() / most_fit_rows]);
  }
  return out;
}

}  // namespace

Fit fit_constants(const KernelForm& form, const DeviceSpec& device,
                  std::span<const TimedRow* const> rows, const std::function<void()>& advance) {
  require(!rows.empty(), "a fit without rows");
  Problem problem{form, device, thinned(rows), {}, {}, advance};
  for (std::size_t i = 0; i < form.constants.size(); ++i) {
    if (form.constants[i].continuous) problem.free.push_back(i);
  }
  std::optional<Optimum> best;
  std::vector<double> constants;
  for (const std::vector<double>& start : starts(form)) {
    problem.at = start;
    VectorXd x(static_cast<Eigen::Index>(problem.free.size()));
    for (std::size_t i = 0; i < problem.free.size(); ++i) {
      x[static_cast<Eigen::Index>(i)] = std::log(start[problem.free[i]]);
    }
    const Optimum found = descend(problem, x);
    if (best && !(found.cost < best->cost)) continue;
    best = found;
    problem.set(found.x);
    constants = problem.at;
  }
  Fit fit;
  fit.cost = best->cost;
  fit.rows = static_cast<std::int64_t>(problem.rows.size());
  for (const double value : constants) fit.constants.push_back({value, value, value, true});
  problem.at = constants;
  add_intervals(problem, *best, fit.constants);
  return fit;
}

}  // namespace indexpool
