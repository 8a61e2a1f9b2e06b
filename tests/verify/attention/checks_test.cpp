// The checks of attention, by hand.
#include "indexpool/verify/attention/checks.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace indexpool::verify::attention {
namespace {

reference::Bounded bounds(std::vector<double> low, std::vector<double> value,
                          std::vector<double> high) {
  reference::Bounded result;
  result.shape = {static_cast<std::int64_t>(value.size())};
  result.value = std::move(value), result.low = std::move(low), result.high = std::move(high);
  return result;
}
using Floats = std::vector<float>;
// Of `count` values that are not open.
reference::Bounded narrow(std::size_t count) {
  const std::vector<double> zeros(count);
  return bounds(zeros, zeros, zeros);
}

TEST(AttentionChecks, TwoWaysToOneNumberAgreeWithinBothReaches) {
  const auto a = bounds({1.0}, {1.1}, {1.2}), b = bounds({1.1}, {1.15}, {1.3});
  const auto agreement = [&](float by_token, float in_chunks, const reference::Bounded& second) {
    return check_agreement(Floats{by_token}, a, Floats{in_chunks}, second).status;
  };
  EXPECT_EQ(agreement(1.0f, 1.25f, b), Status::passed);
  EXPECT_EQ(agreement(1.0f, 1.4f, b), Status::failed);
  // Enclosures that part cannot both hold the number, whatever the answers.
  EXPECT_EQ(agreement(1.1f, 1.1f, bounds({1.3}, {1.35}, {1.4})), Status::failed);
  const auto open = bounds({-HUGE_VAL}, {0}, {HUGE_VAL});
  EXPECT_EQ(agreement(1.1f, 9.0f, open), Status::untrusted);
}

TEST(AttentionChecks, AnAverageStaysAmongItsValues) {
  Tensor values(DType::f32, {3, 1, 1});
  values.set(0, 1), values.set(1, 3), values.set(2, 100);
  const std::vector<Attended> attended = {{{0, 1}}, {{}}};
  const auto status = [&](float first, float second) {
    return check_convexity(Floats{first, second}, narrow(2), values, 1, attended).status;
  };
  EXPECT_EQ(status(2, 0), Status::passed);
  EXPECT_EQ(status(3, 0), Status::passed);
  EXPECT_EQ(status(3.001f, 0), Status::failed);
  EXPECT_EQ(status(0.999f, 0), Status::failed);
  EXPECT_EQ(status(2, 0.001f), Status::failed);
  EXPECT_EQ(check_convexity(Floats{3}, narrow(1), values, 1, {{{1}}}).status, Status::untrusted);
  // Where binary32 may overflow, weights may all be zero.
  const auto open = bounds({-HUGE_VAL, 0}, {0, 0}, {HUGE_VAL, 0});
  EXPECT_EQ(check_convexity(Floats{-7, 0}, open, values, 1, attended).status, Status::passed);
}

TEST(AttentionChecks, WeightsSumToOneWhereThereAreSome) {
  const std::vector<Attended> attended = {{{0, 1}}, {{}}};
  EXPECT_EQ(check_softmax_sum(Floats{1, 0}, narrow(2), 1, attended).status, Status::passed);
  EXPECT_EQ(check_softmax_sum(Floats{0.9999f, 0}, narrow(2), 1, attended).status, Status::failed);
  EXPECT_EQ(check_softmax_sum(Floats{1, 1}, narrow(2), 1, attended).status, Status::failed);
  EXPECT_EQ(check_softmax_sum(Floats{1}, narrow(1), 1, {{{0}}}).status, Status::untrusted);
}

TEST(AttentionChecks, WeightsMoveTheWayTheirEnclosuresDo) {
  const auto low = bounds({0.1}, {0.2}, {0.3}), high = bounds({0.4}, {0.5}, {0.6});
  EXPECT_EQ(check_response(Floats{0.2f}, low, Floats{0.5f}, high).status, Status::passed);
  EXPECT_EQ(check_response(Floats{0.5f}, high, Floats{0.2f}, low).status, Status::passed);
  EXPECT_EQ(check_response(Floats{0.2f}, low, Floats{0.2f}, high).status, Status::failed);
  EXPECT_EQ(check_response(Floats{0.2f}, low, Floats{0.2f}, low).status, Status::untrusted);
}

TEST(AttentionChecks, DecaysAllAtAnEndSayNothing) {
  EXPECT_EQ(check_decay_range(Floats{-5, -1, 0}).status, Status::passed);
  EXPECT_EQ(check_decay_range(Floats{-5, 0, 0}).status, Status::untrusted);
  EXPECT_EQ(check_decay_range(Floats{-5.1f, -1}).status, Status::failed);
  EXPECT_EQ(check_decay_range(Floats{std::nanf("")}).status, Status::failed);
}

TEST(AttentionChecks, NothingFoundIsNotAsExpected) {
  EXPECT_EQ(check_enclosed("bound", Floats{}, bounds({0}, {1}, {2}), 1, "rows").status,
            Status::failed);
  EXPECT_EQ(check_enclosed("bound", Floats{}, bounds({}, {}, {}), 1, "rows").status,
            Status::untrusted);
  EXPECT_EQ(check_enclosed("bound", Floats{std::nanf("")}, bounds({0}, {1}, {2}), 1, "rows").status,
            Status::failed);
}

}  // namespace
}  // namespace indexpool::verify::attention
