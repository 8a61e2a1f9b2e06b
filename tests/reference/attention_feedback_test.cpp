// The feedback loop of article D: attention shifts the next step's pool weights to what is attended
// to.
#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/attention.hpp"
#include "indexpool/reference/policy.hpp"

namespace indexpool::reference {
namespace {

Tensor counts(const Shape& shape, std::vector<int> values) {
  Tensor tensor(DType::i32, shape);
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}
Tensor masses(const Shape& shape, std::vector<double> values) {
  Tensor tensor(DType::f32, shape);
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}
std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.size(); ++i) result.push_back(tensor.at(i));
  return result;
}

AccessTerms fresh(std::int64_t groups, std::int64_t m) {
  AccessTerms terms;
  terms.accesses = Tensor(DType::i32, {groups, m});
  terms.groups_accessed = Tensor(DType::i32, {groups, m});
  terms.all_groups = groups;
  return terms;
}

TEST(Feedback, WhatExceedsTheMeanOfTheAttendedIsCounted) {
  // Four vectors attended to, mean 1/4: 0.4 and 0.3 exceed it, 0.25 itself does not.
  const FeedbackInputs in = {masses({2, 3}, {0.4, 0.05, 0, 0.3, 0, 0.25}),
                             counts({2, 3}, {0, 1, 2, 0, 4, 5})};
  const auto next = attention_feedback(in, fresh(2, 3));
  EXPECT_EQ(values_of(next.accesses), (std::vector<double>{1, 0, 0, 1, 0, 0}));
  // Token 0 has accessed vectors in both groups; the others in none.
  EXPECT_EQ(values_of(next.groups_accessed), (std::vector<double>{2, 0, 0, 2, 0, 0}));
  EXPECT_EQ(next.all_groups, 2);
}

TEST(Feedback, InputsStayAsTheyAre) {
  const auto terms = fresh(1, 2);
  const FeedbackInputs in = {masses({1, 2}, {0.9, 0.1}), counts({1, 2}, {0, 1})};
  const auto next = attention_feedback(in, terms);
  EXPECT_EQ(values_of(terms.accesses), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(next.accesses), (std::vector<double>{1, 0}));
}

TEST(Feedback, CountsStayExactInBinaryThirtyTwo) {
  auto terms = fresh(1, 2);
  terms.accesses.set(0, most_accesses);
  const FeedbackInputs in = {masses({1, 2}, {0.9, 0.1}), counts({1, 2}, {0, 1})};
  EXPECT_EQ(attention_feedback(in, terms).accesses.at(0), most_accesses);
}

// The policy's pool weights of one step, over their group's sum; vectors and positions are equal.
std::vector<double> tfidf_weights(const AccessTerms& terms) {
  PoolingInputs in;
  in.policy = "tfidf";
  in.mode = pooling_mode("f32");
  in.head_dim = 32;
  in.offsets = {0, 1, 2, 3};
  const std::int64_t groups = terms.accesses.dim(0);
  for (std::int64_t g = 0; g < groups; ++g) in.groups.push_back({4 * g, static_cast<int>(g), 0});
  in.vectors = Tensor(DType::f32, {4 * groups, in.head_dim});
  AccessTerms all = terms;
  all.queries = Tensor(DType::f32, {groups, in.head_dim});
  all.position_terms = Tensor(DType::f32, {4});
  in.weights = all;
  auto weights = pool_weights(in).value;
  for (std::size_t i = 0; i < weights.size(); i += 4) {
    const double sum = weights[i] + weights[i + 1] + weights[i + 2] + weights[i + 3];
    for (std::size_t j = i; j < i + 4; ++j) weights[j] /= sum;
  }
  return weights;
}

TEST(Feedback, TheLoopShiftsWeightToWhatIsAttended) {
  // Attention keeps to vector 1 of group 0 and, after five steps, to vector 2.
  auto terms = fresh(3, 4);
  const Tensor tokens = counts({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto step = [&](std::size_t favourite) {
    std::vector<double> mass(12, 0.02);
    mass[favourite] = 0.78;
    terms = attention_feedback({masses({3, 4}, mass), tokens}, terms);
    return tfidf_weights(terms);
  };
  for (int i = 0; i < 5; ++i) {
    const auto weights = step(1);
    EXPECT_GT(weights[1], 2 * weights[0]);
    EXPECT_EQ(weights[4], weights[5]) << "nothing of group 1 was attended to";
  }
  auto before = tfidf_weights(terms);
  for (int i = 0; i < 8; ++i) {
    const auto weights = step(2);
    EXPECT_GT(weights[2], before[2]);
    EXPECT_LT(weights[1], before[1]);
    before = weights;
  }
  EXPECT_GT(before[2], before[1]) << "after eight of thirteen steps";
}

TEST(Feedback, BadMassesAreRefused) {
  const FeedbackInputs in = {masses({1, 2}, {-0.1, 0.1}), counts({1, 2}, {0, 1})};
  EXPECT_THROW(attention_feedback(in, fresh(1, 2)), ConfigError);
  EXPECT_THROW(attention_feedback(in, fresh(1, 3)), ConfigError);
}

}  // namespace
}  // namespace indexpool::reference
