// Instructions that the kernels of the backward pass declare, against what a warp of theirs issues
// in the sm_90a code of nvcc 13.0, and against what must be among them.
#include <string>

#include <gtest/gtest.h>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::kernels {
namespace {

constexpr double lanes = 32;
constexpr std::int64_t some = 960;  // warps, or blocks of 16 tokens

Work work_of(const BackwardArgs& args) { return find_kernel("simt", args).work(args); }

GroupedVectors groups_of(std::int32_t head_dim, std::int32_t index_kpool, std::int64_t warps) {
  GroupedVectors grouped;
  grouped.head_dim = head_dim, grouped.index_kpool = index_kpool;
  grouped.group_count = warps * (head_dim < 256 ? 256 / head_dim : 1);
  return grouped;
}
PoolBackwardArgs pool(std::int32_t head_dim, std::int32_t index_kpool, bool divide,
                      std::int64_t warps = some) {
  PoolBackwardArgs args;
  args.grouped = groups_of(head_dim, index_kpool, warps), args.divide = divide;
  return args;
}
ChannelPoolBackwardArgs channel_pool(std::int32_t head_dim, std::int32_t index_kpool, bool normed,
                                     std::int64_t warps = some) {
  alignas(32) static float channels[2048];  // nothing is launched
  ChannelPoolBackwardArgs args;
  args.grouped = groups_of(head_dim, index_kpool, warps);
  if (normed) args.norm_weight = args.grad_norm = channels, args.rope_dims = 32;
  return args;
}
GateBackwardArgs gate(std::int32_t head_dim, std::int32_t index_kpool, std::int64_t warps = some) {
  GateBackwardArgs args;
  args.grouped = groups_of(head_dim, index_kpool, warps), args.hidden = 1024, args.heads = 4;
  return args;
}
CosineBackwardArgs cosine(std::int32_t head_dim, std::int32_t index_kpool,
                          std::int64_t warps = some) {
  CosineBackwardArgs args;
  args.grouped = groups_of(head_dim, index_kpool, warps);
  return args;
}
AdditiveTermsBackwardArgs additive_terms_of(std::int64_t groups, std::int32_t index_kpool) {
  AdditiveTermsBackwardArgs args;
  args.group_count = groups, args.index_kpool = index_kpool;
  return args;
}
TfidfTermsBackwardArgs tfidf_terms_of(std::int64_t groups, std::int32_t index_kpool) {
  TfidfTermsBackwardArgs args;
  args.grouped.group_count = groups, args.grouped.index_kpool = index_kpool;
  return args;
}
ChannelSoftmaxBackwardArgs channel_softmax(std::int32_t index_kpool, std::int64_t warps = some) {
  ChannelSoftmaxBackwardArgs args;
  args.group_count = warps, args.index_kpool = index_kpool;
  return args;
}
RoleSoftmaxBackwardArgs role_softmax(std::int32_t lanes_of_row, std::int64_t warps = some) {
  RoleSoftmaxBackwardArgs args;
  args.sets = warps * 32 / lanes_of_row, args.index_kpool = lanes_of_row;
  return args;
}
HiddenStatesBackwardArgs hidden_states(std::int32_t heads, std::int64_t warps = some) {
  HiddenStatesBackwardArgs args;
  args.tokens = warps, args.hidden = 256, args.heads = heads;
  return args;
}
HiddenGateBackwardArgs hidden_gate(std::int64_t tokens, std::int32_t heads) {
  HiddenGateBackwardArgs args;
  args.tokens = tokens, args.hidden = 256, args.heads = heads;
  return args;
}

// Sums of `rows` rows each, with the lists that their arguments point to.
struct Sums {
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> first;
  std::int32_t width;
  bool listed;

  Sums(std::int32_t of_width, std::int32_t rows_of_sum, bool has_list, std::int64_t sums = some)
      : rows(static_cast<std::size_t>(rows_of_sum * sums)), width(of_width), listed(has_list) {
    for (std::int64_t s = 0; s <= sums; ++s) first.push_back(s * rows_of_sum);
  }
  SumRowsArgs args() const {
    SumRowsArgs args;
    args.rows = args.host_rows = listed ? rows.data() : nullptr;
    args.first = args.host_first = first.data();
    args.segments = std::ssize(first) - 1;
    args.width = width;
    return args;
  }
};

struct Seen {
  const char* shape;
  BackwardArgs args;
  std::int64_t warps;
  Instructions one;  // of a warp
};

// A warp's path through the compiled code, counted instruction by instruction; the declared parts
// are fitted to many such paths.
void expect_as_compiled(const std::vector<Seen>& all) {
  for (const Seen& seen : all) {
    const auto warps = static_cast<double>(seen.warps);
    const Instructions found = work_of(seen.args).instructions;
    EXPECT_NEAR(found.issued / warps, seen.one.issued, 0.03 * seen.one.issued) << seen.shape;
    EXPECT_NEAR(found.integer / warps, seen.one.integer, 0.05 * seen.one.integer) << seen.shape;
    EXPECT_NEAR(found.special / warps, seen.one.special, 0.01 * seen.one.special) << seen.shape;
  }
}

TEST(BackwardIssue, OfGroupsIsWhatAWarpIssuesAsCompiled) {
  expect_as_compiled({
      {"4 of 128, divided", pool(128, 4, true), some, {719, 235, 6}},
      {"4 of 128", pool(128, 4, false), some, {649, 211, 4}},
      {"16 of 64", pool(64, 16, false), some, {2133, 684, 16}},
      {"8 of 512, divided", pool(512, 8, true), some, {1709, 507, 10}},
      {"4 of 2048, divided", pool(2048, 4, true), some, {1826, 425, 6}},
      {"4 of 128 channels", channel_pool(128, 4, false), some, {676, 364, 0}},
      {"16 of 128 channels", channel_pool(128, 16, false), some, {2428, 1363, 0}},
      {"4 of 128 channels, normed", channel_pool(128, 4, true), some, {1274, 471, 20}},
      {"8 of 512 channels, normed", channel_pool(512, 8, true), some, {4010, 1677, 36}},
      {"gates, 4 of 128", gate(128, 4), some, {481, 156, 3}},
      {"gates, 16 of 128", gate(128, 16), some, {1582, 513, 3}},
      {"gates, 8 of 512", gate(512, 8), some, {1783, 551, 3}},
      {"cosines, 4 of 128", cosine(128, 4), some, {1118, 347, 18}},
      {"cosines, 16 of 32", cosine(32, 16), some, {3728, 1161, 69}},
      {"cosines, 8 of 512", cosine(512, 8), some, {2940, 901, 37}},
  });
}

TEST(BackwardIssue, OfTheOthersIsWhatAWarpIssuesAsCompiled) {
  const Sums wide(128, 16, true), unlisted(128, 16, false), narrow(4, 1024, true),
      odd(33, 16, true), odd_unlisted(33, 16, false);
  expect_as_compiled({
      {"softmax of 4", channel_softmax(4), some, {174, 54, 0}},
      {"softmax of 8", channel_softmax(8), some, {320, 98, 0}},
      {"softmax of 16", channel_softmax(16), some, {632, 196, 0}},
      {"roles, 4", role_softmax(4), some, {67, 26, 0}},
      {"roles, 16", role_softmax(16), some, {77, 28, 0}},
      {"additive terms, 4", additive_terms_of(8 * some, 4), some, {238, 61, 4}},
      {"tfidf terms, 4", tfidf_terms_of(8 * some, 4), some, {205, 55, 7}},
      {"tfidf terms, 16", tfidf_terms_of(2 * some, 16), some, {215, 59, 7}},
      {"hidden states, 4 heads", hidden_states(4), some, {187, 66, 3}},
      {"hidden states, 7 heads", hidden_states(7), some, {291, 111, 3}},
      {"hidden states, 16 heads", hidden_states(16), some, {457, 168, 3}},
      {"hidden gate, 16 tokens", hidden_gate(16 * some, 4), 4 * some, {531, 227, 6}},
      {"hidden gate, 5 tokens", hidden_gate(5, 4), 4, {239, 98, 6}},
      {"16 rows of 128", wide.args(), some, {531, 196, 6}},
      {"16 rows of 128 in order", unlisted.args(), some, {495, 149, 6}},
      {"1024 rows of 4", narrow.args(), some, {973, 344, 6}},
      {"16 rows of 33", odd.args(), 2 * some, {452, 189, 6}},
      {"16 rows of 33 in order", odd_unlisted.args(), 2 * some, {427, 158, 6}},
  });
}

// One of each kernel.
std::vector<BackwardArgs> launches(std::int64_t scale, std::int32_t dim, std::int32_t index_kpool,
                                   const Sums& sums) {
  const std::int64_t warps = 64 * scale;
  RoleSoftmaxBackwardArgs roles;
  roles.sets = 64 * warps, roles.index_kpool = index_kpool;
  return {pool(dim, index_kpool, true, warps),
          pool(dim, index_kpool, false, warps),
          channel_pool(dim, index_kpool, false, warps),
          channel_pool(dim, index_kpool, true, warps),
          gate(dim, index_kpool, warps),
          cosine(dim, index_kpool, warps),
          additive_terms_of(64 * warps, index_kpool),
          tfidf_terms_of(64 * warps, index_kpool),
          channel_softmax(index_kpool, warps),
          roles,
          hidden_states(index_kpool, warps),
          hidden_gate(16 * warps, index_kpool),
          sums.args()};
}

// At least this many warp instructions: two operations of a lane at a time, shuffles, accesses of
// at most 16 bytes a lane.
double fewest(const Work& work) {
  const Traffic& t = work.traffic;
  const auto bytes = static_cast<double>(t.global_load.value + t.global_store.value);
  return work.f32_flop.value / (2 * lanes) + static_cast<double>(t.shuffles) + bytes / (16 * lanes);
}

TEST(BackwardIssue, CoversTheArithmeticAndTheAccesses) {
  for (const std::int32_t dim : {32, 128, 512, 2048}) {
    for (const std::int32_t index_kpool : {1, 3, 4, 8, 16}) {
      const Sums sums(dim, 4 * index_kpool, dim != 32, 64);
      for (const BackwardArgs& args : launches(1, dim, index_kpool, sums)) {
        const Work work = work_of(args);
        const std::string which = std::to_string(args.index()) + " of " + std::to_string(dim);
        const Instructions& issue = work.instructions;
        EXPECT_GT(issue.issued, fewest(work)) << which;
        EXPECT_LT(issue.integer + issue.special, issue.issued) << which;
        const auto warps = static_cast<double>(work.blocks * work.threads_per_block) / lanes;
        EXPECT_LE(issue.issued, warps * work.chain.instructions * 1.0001) << which;
        EXPECT_GT(issue.issued, 0.8 * warps * work.chain.instructions) << which;
        EXPECT_GE(work.chain.first_loads, 1) << which;
      }
    }
  }
}

TEST(BackwardIssue, DoublesWithTheGroupsTokensAndSums) {
  const Sums sums(128, 16, true, 64), twice_as_many(128, 16, true, 128);
  const auto once = launches(1, 128, 4, sums), twice = launches(2, 128, 4, twice_as_many);
  for (std::size_t i = 0; i < once.size(); ++i) {
    const Work one = work_of(once[i]), two = work_of(twice[i]);
    EXPECT_DOUBLE_EQ(two.instructions.issued, 2 * one.instructions.issued) << i;
    EXPECT_EQ(two.chain.instructions, one.chain.instructions) << i;
  }
}

// As many as the longest has: what the others do not add does not count.
TEST(BackwardIssue, OfUnevenSumsTheLongestMakesTheChain) {
  Sums uneven(128, 4, true, 64);
  const Work even = work_of(uneven.args());
  uneven.rows.resize(uneven.rows.size() + 60);
  uneven.first.back() += 60;
  const Work longer = work_of(uneven.args());
  EXPECT_GT(longer.chain.instructions, 5 * even.chain.instructions);
  EXPECT_LT(longer.instructions.issued, 1.1 * even.instructions.issued);
}

TEST(BackwardIssue, OfNothingIsNothing) {
  const Sums none(128, 4, true, 0);
  for (const BackwardArgs& args : launches(0, 128, 4, none))
    EXPECT_EQ(work_of(args).instructions, Instructions{}) << args.index();
}

TEST(BackwardIssue, OfTheLastTokensIsLess) {
  const double whole = work_of(hidden_gate(160, 4)).instructions.issued;
  EXPECT_LT(work_of(hidden_gate(155, 4)).instructions.issued, whole);
  EXPECT_GT(work_of(hidden_gate(161, 4)).instructions.issued, whole);
}

}  // namespace
}  // namespace indexpool::kernels
