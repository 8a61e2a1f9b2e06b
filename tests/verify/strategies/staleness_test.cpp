// The bound on what incremental updates leave: it holds, and it is not loose without reason.
#include "indexpool/verify/strategies/staleness.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace indexpool::verify::strategies {
namespace {

double draw(int low, int high, double unit) { return *rc::gen::inRange(low, high + 1) * unit; }

std::vector<double> draw_all(std::size_t count, int reach, double unit) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(draw(-reach, reach, unit));
  return values;
}

// Forms by their formulas, apart from the code under test.
std::vector<double> gated(const std::vector<double>& w, double b, const std::vector<double>& v) {
  std::vector<double> weights;
  for (std::size_t first = 0; first < v.size(); first += w.size()) {
    const double z = std::inner_product(w.begin(), w.end(), v.begin() + std::ptrdiff_t(first), b);
    weights.push_back(1 / (1 + std::exp(-z)));
  }
  return weights;
}
std::vector<double> by_cosine(const std::vector<double>& base, double share,
                              const std::vector<double>& q, const std::vector<double>& v) {
  std::vector<double> weights;
  const double qq = std::inner_product(q.begin(), q.end(), q.begin(), 0.0);
  for (std::size_t i = 0; i < base.size(); ++i) {
    const auto at = v.begin() + std::ptrdiff_t(i * q.size());
    const double vv = std::inner_product(at, at + std::ptrdiff_t(q.size()), at, 0.0);
    const double qv = std::inner_product(q.begin(), q.end(), at, 0.0);
    const double cosine = qq > 0 && vv > 0 ? qv / std::sqrt(qq * vv) : 0;
    weights.push_back(base[i] + share * (1 + cosine) / 2);
  }
  return weights;
}
std::vector<double> pooled(const std::vector<double>& weights, const std::vector<double>& v) {
  const std::size_t dim = v.size() / weights.size();
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> result(dim);
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t c = 0; c < dim; ++c) result[c] += weights[i] / sum * v[i * dim + c];
  return result;
}

// Vectors that have moved by the threshold at most, now and then by exactly that.
std::vector<double> moved(const std::vector<double>& from, double threshold) {
  std::vector<double> now = from;
  for (double& x : now) x += threshold * draw(-4, 4, 0.25);
  return now;
}

void expect_within(const std::vector<double>& a, const std::vector<double>& b,
                   const std::vector<double>& bound) {
  for (std::size_t c = 0; c < a.size(); ++c) RC_ASSERT(std::abs(a[c] - b[c]) <= bound[c] + 1e-12);
}

RC_GTEST_PROP(Staleness, FixedConvexWeightsLeaveNoMoreThanTheThreshold, ()) {
  const std::size_t m = std::size_t(*rc::gen::inRange(1, 9)), dim = 3;
  const auto then = draw_all(m * dim, 100, 0.1);
  const double threshold = draw(0, 100, 0.02);
  const auto now = moved(then, threshold);
  std::vector<double> weights;
  for (std::size_t i = 0; i < m; ++i) weights.push_back(draw(1, 100, 0.01));
  const double change = log_weight_change({}, threshold, weights, then);
  RC_ASSERT(change == 0);
  expect_within(pooled(weights, then), pooled(weights, now),
                staleness_bound(threshold, change, then, std::int64_t(m)));
}

RC_GTEST_PROP(Staleness, GatedWeightsStayWithinTheBoundThatCarriesTheirSlope, ()) {
  const std::size_t m = std::size_t(*rc::gen::inRange(2, 9)), dim = 4;
  const auto then = draw_all(m * dim, 100, 0.05);
  const auto gate = draw_all(dim, 100, 0.03);
  const double bias = draw(-100, 100, 0.05), threshold = draw(0, 100, 0.01);
  const auto now = moved(then, threshold);
  WeightSlope slope{Dependence::gate, 0, 0};
  for (const double w : gate) slope.gate_sum += std::abs(w);
  const auto before = gated(gate, bias, then);
  const double change = log_weight_change(slope, threshold, before, then);
  expect_within(pooled(before, then), pooled(gated(gate, bias, now), now),
                staleness_bound(threshold, change, then, std::int64_t(m)));
}

RC_GTEST_PROP(Staleness, WeightsOfACosineStayWithinTheBound, ()) {
  const std::size_t m = std::size_t(*rc::gen::inRange(2, 9)), dim = 4;
  const auto then = draw_all(m * dim, 100, 0.05), query = draw_all(dim, 100, 0.05);
  std::vector<double> base;
  for (std::size_t i = 0; i < m; ++i) base.push_back(draw(1, 100, 0.01));
  const double share = draw(0, 100, 0.01), threshold = draw(0, 100, 0.01);
  const auto now = moved(then, threshold);
  const auto before = by_cosine(base, share, query, then);
  const double change = log_weight_change({Dependence::cosine, 0, share}, threshold, before, then);
  expect_within(pooled(before, then), pooled(by_cosine(base, share, query, now), now),
                staleness_bound(threshold, change, then, std::int64_t(m)));
}

// The step of the proof that is easily got wrong: odds change by e^2L, and the largest mass that
// moves is tanh(L / 2), reached.
TEST(Staleness, TheLargestMassThatWeightsCanMoveIsReached) {
  for (const double change : {0.1, 1.0, 3.0}) {
    const double share = 1 / (1 + std::exp(change));
    const std::vector<double> then = {share, 1 - share};
    const std::vector<double> now = {share * std::exp(change), (1 - share) * std::exp(-change)};
    const double mass = now[0] / (now[0] + now[1]) - share;
    EXPECT_NEAR(mass, std::tanh(change / 2), 1e-14);
    // Vectors 0 and 1 that do not move themselves: the bound is that mass.
    EXPECT_NEAR(staleness_bound(0, change, std::vector<double>{1, 0}, 2)[0], mass, 1e-14);
  }
}

TEST(Staleness, TheThresholdAloneIsTooLittleWhereWeightsFollowTheVectors) {
  // A steep gate: the second vector's weight goes from almost nothing to almost one.
  const std::vector<double> then = {10, -0.5}, now = {10, 0.5}, gate = {20};
  const auto before = gated(gate, 0, then);
  const double off = std::abs(pooled(before, then)[0] - pooled(gated(gate, 0, now), now)[0]);
  EXPECT_GT(off, staleness_bound(1, 0, then, 2)[0]);
  const double change = log_weight_change({Dependence::gate, 20, 0}, 1, before, then);
  EXPECT_EQ(change, 20);
  EXPECT_LE(off, staleness_bound(1, change, then, 2)[0]);
}

TEST(Staleness, NothingMovedLeavesNothing) {
  const std::vector<double> then = {1, 2, 3, 4}, weights = {0.25, 0.75};
  for (const Dependence dependence : {Dependence::none, Dependence::gate, Dependence::cosine}) {
    const double change = log_weight_change({dependence, 3, 0.3}, 0, weights, then);
    EXPECT_EQ(change, 0);
    for (const double bound : staleness_bound(0, change, then, 2)) EXPECT_LT(bound, 1e-14);
  }
}

TEST(Staleness, ACosineOfAVectorThatMayVanishHasNoBoundButTheRange) {
  const std::vector<double> then = {0.1, 0, 5, 0}, weights = {0.2, 0.5};
  const double change = log_weight_change({Dependence::cosine, 0, 1}, 1, weights, then);
  EXPECT_TRUE(std::isinf(change));
  EXPECT_NEAR(staleness_bound(1, change, then, 2)[0], 1 + 4.9, 1e-12);
}

}  // namespace
}  // namespace indexpool::verify::strategies
