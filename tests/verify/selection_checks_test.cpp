#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify {
namespace {

constexpr IndexerConfig config{1, 32, 4, 2, true};  // two pools of two tokens

IndexerInputs one_sequence(std::int64_t tokens, std::int64_t first_key = 0) {
  IndexerInputs inputs;
  inputs.config = config;
  inputs.sequences = {{first_key, tokens, 0}};
  inputs.keys = Tensor(DType::bf16, {tokens, 32});
  return inputs;
}

// Every row of `tokens` tokens with the same logits, each with the enclosure value +- error.
LogitBounds bounds_of(std::int64_t tokens, const std::vector<double>& values, double error) {
  const auto pools = static_cast<std::int64_t>(values.size());
  reference::Bounded bounds(Shape{tokens, pools});
  for (std::int64_t i = 0; i < tokens * pools; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double value = values[static_cast<std::size_t>(i % pools)];
    bounds.value[at] = value;
    bounds.low[at] = value - error;
    bounds.high[at] = value + error;
  }
  LogitBounds result;
  result.sequences.push_back(std::move(bounds));
  return result;
}

// Pools with distinct bytes.
StoredPools distinct_pools(std::int64_t count) {
  StoredPools pools;
  pools.pools = count;
  for (std::int64_t p = 0; p < count; ++p) {
    pools.raw.push_back({static_cast<std::byte>(p), static_cast<std::byte>(p >> 8)});
  }
  return pools;
}

// What a correct top-k makes of the same logits in every row, in the columns of kernels/args.hpp.
std::vector<std::int32_t> correct_selection(const IndexerInputs& inputs,
                                            const std::vector<double>& values) {
  std::vector<std::int32_t> selection;
  const IndexerConfig& c = inputs.config;
  for (const auto& query : query_rows(inputs)) {
    const auto visible = static_cast<std::size_t>((query.position + 1) / c.index_kpool);
    const auto pools = reference::select(std::span(values).first(visible), c.topk_pools());
    std::vector<std::int32_t> row(static_cast<std::size_t>(c.selection_width()), -1);
    std::size_t column = 0;
    for (const std::int64_t pool : pools) {
      for (std::int64_t j = 0; j < c.index_kpool; ++j) {
        row[column++] = static_cast<std::int32_t>(query.first_key + pool * c.index_kpool + j);
      }
    }
    column = static_cast<std::size_t>(c.index_topk);
    for (std::int64_t t = static_cast<std::int64_t>(visible) * c.index_kpool; t <= query.position;
         ++t) {
      row[column++] = static_cast<std::int32_t>(query.first_key + t);
    }
    selection.insert(selection.end(), row.begin(), row.end());
  }
  return selection;
}

std::span<std::int32_t> row_of(std::vector<std::int32_t>& selection, std::int64_t row) {
  const auto width = static_cast<std::size_t>(config.selection_width());
  return std::span(selection).subspan(static_cast<std::size_t>(row) * width, width);
}

const std::vector<double> values{3, 1, 2, 5, 4};

TEST(Selection, TheRightOneIsCertifiedAndDecidable) {
  const IndexerInputs inputs = one_sequence(10);
  const auto selection = correct_selection(inputs, values);
  const Certificate certificate =
      check_selection(inputs, bounds_of(10, values, 0.1), distinct_pools(5), selection, false);
  EXPECT_EQ(certificate.check.status, Status::passed) << certificate.check.reason;
  EXPECT_EQ(certificate.rows, 10);
  EXPECT_EQ(certificate.decidable_rows, 10);
  EXPECT_EQ(check_structure(inputs, selection).status, Status::passed);
}

TEST(Selection, APoolThatSurelyLosesIsCaught) {
  const IndexerInputs inputs = one_sequence(10);
  auto selection = correct_selection(inputs, values);
  auto row = row_of(selection, 9);  // sees all five: pools 3 and 4 win
  row[0] = 2, row[1] = 3;           // pool 1 instead of pool 3
  row[2] = 8, row[3] = 9;
  const Certificate certificate =
      check_selection(inputs, bounds_of(10, values, 0.1), distinct_pools(5), selection, false);
  EXPECT_EQ(certificate.check.status, Status::failed);
  EXPECT_NE(certificate.check.reason.find("token 9: pool 1"), std::string::npos)
      << certificate.check.reason;
}

TEST(Selection, EitherOfTwoThatTheBoundsCannotTellApartIsRight) {
  const std::vector<double> close{3, 1, 2.95, 2.9};
  const IndexerInputs inputs = one_sequence(8);
  auto selection = correct_selection(inputs, close);
  auto row = row_of(selection, 7);
  row[0] = 0, row[1] = 1, row[2] = 6, row[3] = 7;  // pool 3 for pool 2
  const Certificate certificate =
      check_selection(inputs, bounds_of(8, close, 0.1), distinct_pools(4), selection, true);
  EXPECT_EQ(certificate.check.status, Status::passed) << certificate.check.reason;
  EXPECT_LT(certificate.decidable_rows, certificate.rows);
}

TEST(Selection, MostlyUndecidableRowsAreUntrustedUnlessTheFillWantsThem) {
  const std::vector<double> flat{1, 1, 1, 1, 1};
  const IndexerInputs inputs = one_sequence(10);
  const auto selection = correct_selection(inputs, flat);
  const auto judge = [&](bool about_ties) {
    return check_selection(inputs, bounds_of(10, flat, 0.1), distinct_pools(5), selection,
                           about_ties)
        .check;
  };
  EXPECT_EQ(judge(false).status, Status::untrusted);
  EXPECT_EQ(judge(true).status, Status::passed);
  EXPECT_NE(judge(true).reason.find("decidable"), std::string::npos);
}

// Equal stored bytes, or enclosures that are the same point: the rule decides.
TEST(Selection, CertainTiesAreDecidable) {
  const std::vector<double> flat{1, 1, 1, 1, 1};
  const IndexerInputs inputs = one_sequence(10);
  const auto selection = correct_selection(inputs, flat);
  StoredPools alike = distinct_pools(5);
  std::ranges::fill(alike.raw, alike.raw[0]);
  const auto by_bytes = check_selection(inputs, bounds_of(10, flat, 0.1), alike, selection, false);
  EXPECT_EQ(by_bytes.decidable_rows, by_bytes.rows);
  const auto by_points =
      check_selection(inputs, bounds_of(10, flat, 0), distinct_pools(5), selection, false);
  EXPECT_EQ(by_points.decidable_rows, by_points.rows);
}

struct Damage {
  const char* what;
  void (*damage)(std::span<std::int32_t> row);  // of token 8: pools 0 and 3, tail token 8
  const char* words;
};
const Damage damages[] = {
    {"twice", [](std::span<std::int32_t> r) { r[2] = 0, r[3] = 1; }, "twice"},
    {"future", [](std::span<std::int32_t> r) { r[2] = 9; }, "after the query"},
    {"negative", [](std::span<std::int32_t> r) { r[2] = -7; }, "before the first"},
    {"half_a_pool", [](std::span<std::int32_t> r) { r[3] = -1; }, "1 of its 2"},
    {"no_tail", [](std::span<std::int32_t> r) { r[4] = -1; }, "tail"},
    {"too_few", [](std::span<std::int32_t> r) { r[2] = r[3] = -1; }, "1 pools selected"},
};
class Structure : public testing::TestWithParam<Damage> {};
TEST_P(Structure, FaultIsNamed) {
  const IndexerInputs inputs = one_sequence(9);
  auto selection = correct_selection(inputs, values);
  GetParam().damage(row_of(selection, 8));
  const Check check = check_structure(inputs, selection);
  EXPECT_EQ(check.status, Status::failed);
  EXPECT_NE(check.reason.find("token 8"), std::string::npos) << check.reason;
  EXPECT_NE(check.reason.find(GetParam().words), std::string::npos) << check.reason;
}
INSTANTIATE_TEST_SUITE_P(Damages, Structure, testing::ValuesIn(damages),
                         [](const auto& tested) { return std::string(tested.param.what); });

TEST(Structure, WrongOrderAndMisplacedTailAreCaught) {
  const IndexerInputs inputs = one_sequence(9, 20);
  auto selection = correct_selection(inputs, values);
  ASSERT_EQ(check_structure(inputs, selection).status, Status::passed);
  auto row = row_of(selection, 8);
  std::rotate(row.begin(), row.begin() + 2, row.begin() + 4);
  EXPECT_EQ(check_structure(inputs, selection).status, Status::failed);
  selection = correct_selection(inputs, values);
  row = row_of(selection, 2);  // one pool, then the tail: not directly behind it
  std::swap(row[2], row[4]);
  EXPECT_EQ(check_structure(inputs, selection).status, Status::failed);
}

TEST(TieRule, AnotherOfEqualLogitsIsCaught) {
  const IndexerInputs inputs = one_sequence(8);
  const std::vector<double> flat{1, 1, 1, 1};
  const std::vector<float> logits(8 * 4, 1.0f);
  auto selection = correct_selection(inputs, flat);
  EXPECT_EQ(check_tie_rule(inputs, logits, 4, selection).status, Status::passed);
  auto row = row_of(selection, 7);
  row[2] = 6, row[3] = 7;
  EXPECT_EQ(check_tie_rule(inputs, logits, 4, selection).status, Status::failed);
}

RC_GTEST_PROP(TieRule, HoldsForWhatTheRuleSelectsFromDifficultLogits, (std::uint64_t seed)) {
  const IndexerInputs inputs = one_sequence(24);
  const std::int64_t stride = 16;
  const std::vector<float> logits = adversarial_logits(inputs, stride, seed);
  std::vector<std::int32_t> selection;
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto visible = static_cast<std::size_t>((query.position + 1) / 2);
    const auto scores =
        std::span(logits).subspan(static_cast<std::size_t>(row++ * stride), visible);
    const std::vector<double> exact(scores.begin(), scores.end());
    for (const std::int64_t pool : reference::select(exact, config.topk_pools())) {
      RC_ASSERT(!std::isnan(exact[static_cast<std::size_t>(pool)]));
    }
    const auto expanded = reference::expand(reference::select(exact, config.topk_pools()),
                                            query.position, query.first_key, config);
    selection.insert(selection.end(), expanded.begin(), expanded.end());
  }
  RC_ASSERT(check_tie_rule(inputs, logits, stride, selection).violations == 0);
}

TEST(DifficultLogits, HoldNaNInfinitiesAndBothZeros) {
  const IndexerInputs inputs = one_sequence(200);
  const auto logits = adversarial_logits(inputs, 100, 5);
  const auto any = [&](auto test) { return std::ranges::any_of(logits, test); };
  EXPECT_TRUE(any([](float x) { return std::isnan(x); }));
  EXPECT_TRUE(any([](float x) { return x == std::numeric_limits<float>::infinity(); }));
  EXPECT_TRUE(any([](float x) { return x == -std::numeric_limits<float>::infinity(); }));
  EXPECT_TRUE(any([](float x) { return x == 0 && std::signbit(x); }));
  EXPECT_TRUE(any([](float x) { return x == 0 && !std::signbit(x); }));
}

}  // namespace
}  // namespace indexpool::verify
