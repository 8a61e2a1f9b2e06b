#include "indexpool/model/problem.hpp"

#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"

#include "expect_error.hpp"

namespace indexpool {
namespace {

std::string suite_error(std::string_view cases) {
  const std::string text = R"({"name": "t", "why": "test", "cases": )" + std::string(cases) + "}";
  return config_error_of([&] { parse_suite(text, "t.json"); });
}

Problem only(std::string_view a_case) {
  const Suite suite = parse_suite(
      R"({"name": "t", "why": "test", "cases": [)" + std::string(a_case) + "]}", "t.json");
  EXPECT_EQ(suite.problems.size(), 1U);
  return suite.problems.at(0);
}

TEST(Suite, AbsentAxesHaveTheDefaults) { EXPECT_EQ(only("{}"), Problem{}); }

TEST(Suite, EveryAxisReachesItsField) {
  Problem expected;
  expected.mode = "int8";
  expected.fill = "ties";
  expected.lengths = {0, 5, 64};
  expected.indexer = {8, 64, 48, 16, false};
  expected.states_per_page = 32;
  expected.schedule = {7, 3, 6};
  expected.seed = 18446744073709551615U;
  EXPECT_EQ(only(R"({"mode": ["int8"], "fill": ["ties"], "lengths": [[0, 5, 64]], "heads": [8],
                     "head_dim": [64], "kpool": [16], "topk": [48], "tail": [false],
                     "page": [32], "chunk": [3], "prefill": [7], "drafts": [6],
                     "seed": [18446744073709551615]})"),
            expected);
}

TEST(Suite, LaterAxesVaryFastest) {
  const Suite suite = parse_suite(
      R"({"name": "ci", "why": "edges", "cases": [{"mode": ["bf16", "int8"], "seed": [1, 2]}]})",
      "ci.json");
  EXPECT_EQ(suite.name, "ci");
  EXPECT_EQ(suite.why, "edges");
  ASSERT_EQ(suite.problems.size(), 4U);
  EXPECT_EQ(suite.problems[0].mode + std::to_string(suite.problems[0].seed), "bf161");
  EXPECT_EQ(suite.problems[1].mode + std::to_string(suite.problems[1].seed), "bf162");
  EXPECT_EQ(suite.problems[2].mode + std::to_string(suite.problems[2].seed), "int81");
}

// "[<first>,...,<last>]" of `count` values.
template <class TextOf>
std::string list(std::size_t count, TextOf text_of) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += text_of(i);
  }
  text += ']';
  return text;
}

std::string one_length(std::size_t i) {
  return list(1, [i](std::size_t) { return std::to_string(i + 1); });
}

RC_GTEST_PROP(Suite, ACaseStandsForTheProductOfItsAxes, ()) {
  const auto count = [] { return *rc::gen::inRange<std::size_t>(1, 5); };
  const std::size_t lengths = count(), seeds = count(), kpools = count();
  const auto counter = [](std::size_t i) { return std::to_string(i); };
  const auto power = [](std::size_t i) { return std::to_string(1 << i); };
  std::ostringstream text;
  const std::string a_case = [&] {
    text << R"({"lengths": )" << list(lengths, one_length) << R"(, "seed": )"
         << list(seeds, counter) << R"(, "kpool": )" << list(kpools, power) << "}";
    return text.str();
  }();
  text.str("");
  text << R"({"name": "t", "why": "w", "cases": [)" << a_case << ",{}," << a_case << "]}";
  const Suite suite = parse_suite(text.str(), "t.json");
  const std::size_t product = lengths * seeds * kpools;
  RC_ASSERT(suite.problems.size() == 2 * product + 1);
  for (std::size_t i = 0; i < product; ++i) {
    RC_ASSERT(suite.problems[i] == suite.problems[product + 1 + i]);
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(suite.problems[i] != suite.problems[j]);
  }
}

TEST(Suite, ErrorsNameFileAndPointer) {
  expect_parts(suite_error(R"([{}, {"modes": ["bf16"]}])"), {"t.json: /cases/1"});
  expect_parts(suite_error(R"([{"modes": ["bf16"]}])"), {"did you mean \"mode\""});
  expect_parts(suite_error(R"([{"seed": 1}])"), {"t.json: /cases/0/seed"});
  expect_parts(suite_error(R"([{"seed": []}])"), {"t.json: /cases/0/seed"});
  expect_parts(suite_error(R"([{"lengths": [5]}])"), {"t.json: /cases/0/lengths/0"});
  expect_parts(suite_error(R"([{"lengths": [[5], [-1]]}])"), {"t.json: /cases/0/lengths/1/0"});
  expect_parts(suite_error(R"([{"heads": [0]}])"), {"t.json: /cases/0/heads/0"});
  expect_parts(suite_error(R"([{"kpool": [4.5]}])"), {"t.json: /cases/0/kpool/0"});
  expect_parts(suite_error("[]"), {"t.json: /cases"});
  expect_parts(suite_error("{}"), {"t.json: /cases"});
  expect_parts(config_error_of([] { parse_suite(R"({"name": "t", "cases": [{}]})", "t.json"); }),
               {"\"why\" is missing"});
  expect_parts(config_error_of([] { parse_suite("{\n \"name\": }", "t.json"); }),
               {"t.json: line 2"});
}

TEST(Suite, ProblemsThatCannotBeAreRefusedWithTheirCase) {
  const std::string error = suite_error(R"([{}, {"kpool": [4, 3]}])");
  expect_parts(error, {"t.json: /cases/1"});
  expect_parts(error, {"3 does not divide index_topk 2048"});
  expect_parts(suite_error(R"([{"mode": ["fp4"]}])"), {"unknown numeric mode \"fp4\""});
  expect_parts(suite_error(R"([{"drafts": [7]}])"), {"expected 0 to 6"});
  expect_parts(suite_error(R"([{"prefill": [-2]}])"), {"/cases/0/prefill/0"});
  expect_parts(suite_error(R"([{"lengths": [[0, 0]]}])"), {"at least one token"});
  expect_parts(suite_error(R"([{"lengths": [[]]}])"), {"no sequence"});
  expect_parts(suite_error(R"([{"lengths": [[2147483648]]}])"), {"2147483648"});
}

TEST(Suite, ProductsThatExplodeAreRefused) {
  const auto counter = [](std::size_t i) { return std::to_string(i); };
  std::ostringstream cases;
  cases << R"([{"seed": )" << list(101, counter) << R"(, "lengths": )" << list(101, one_length)
        << R"(, "drafts": [0, 1, 2, 3, 4, 5, 6], "chunk": )" << list(15, counter) << "}]";
  expect_parts(suite_error(cases.str()), {"product of 1071105 problems"});  // 101 x 101 x 7 x 15
}

TEST(Problem, SizesWhoseProductOverflowsAreRefused) {
  Problem problem;
  problem.indexer = {1LL << 30, 1LL << 30, 4, 4, true};
  problem.lengths = {8};
  expect_parts(config_error_of([&] { validate(problem, "p"); }), {"p/lengths"});
  problem.lengths = {1};
  EXPECT_NO_THROW(validate(problem, "p"));
}

TEST(Problem, RepeatLineKeepsModeAndLengthsAndOmitsDefaults) {
  EXPECT_EQ(repeat_line(Problem{}), "indexpool verify --mode vllm_fp8 --lengths 259");
  Problem problem;
  problem.mode = "bf16";
  problem.lengths = {1, 2, 0};
  problem.indexer = {8, 64, 64, 16, false};
  problem.schedule = {10, 5, 2};
  problem.states_per_page = 32;
  problem.fill = "ties";
  problem.seed = 9;
  EXPECT_EQ(repeat_line(problem),
            "indexpool verify --mode bf16 --heads 8 --head-dim 64 --topk 64 --kpool 16 --no-tail "
            "--lengths 1,2,0 --prefill 10 --chunk 5 --drafts 2 --page 32 --fill ties --seed 9");
}

TEST(Problem, DescriptionCountsEqualLengths) {
  Problem problem;
  problem.lengths = {5, 64, 64, 64};
  EXPECT_EQ(describe(problem),
            "vllm_fp8 32x128 kpool 4 topk 2048, 1 x 5 + 3 x 64 tokens, pages of 64, fill normal, "
            "seed 1");
  problem.lengths = {1, 2, 3, 4, 5, 6};
  expect_parts(describe(problem), {"+ 1 x 4 + 2 more tokens"});
}

// An independent reading of the options, as a command line would.
Problem from_line(const std::string& line) {
  Problem problem;
  std::istringstream words(line);
  std::string word;
  words >> word >> word;
  const auto integer = [&] {
    std::string value;
    words >> value;
    return std::stoll(value);
  };
  while (words >> word) {
    if (word == "--mode") words >> problem.mode;
    if (word == "--fill") words >> problem.fill;
    if (word == "--heads") problem.indexer.index_n_heads = integer();
    if (word == "--head-dim") problem.indexer.index_head_dim = integer();
    if (word == "--topk") problem.indexer.index_topk = integer();
    if (word == "--kpool") problem.indexer.index_kpool = integer();
    if (word == "--no-tail") problem.indexer.index_kpool_always_select_tail = false;
    if (word == "--prefill") problem.schedule.prefill_tokens = integer();
    if (word == "--chunk") problem.schedule.prefill_chunk = integer();
    if (word == "--drafts") problem.schedule.drafts = integer();
    if (word == "--page") problem.states_per_page = integer();
    if (word == "--seed") words >> problem.seed;
    if (word == "--lengths") {
      std::string list, item;
      words >> list;
      problem.lengths.clear();
      for (std::istringstream items(list); std::getline(items, item, ',');) {
        problem.lengths.push_back(std::stoll(item));
      }
    }
  }
  return problem;
}

RC_GTEST_PROP(Problem, RepeatLineSaysEverything, ()) {
  const auto pick = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  Problem problem;
  problem.mode = *rc::gen::element<std::string>("vllm_fp8", "bf16", "int8", "hf_f32");
  problem.fill = *rc::gen::element<std::string>("normal", "ties");
  problem.indexer.index_n_heads = pick(31, 33);
  problem.indexer.index_head_dim = *rc::gen::element<std::int64_t>(32, 64, 128);
  problem.indexer.index_kpool = *rc::gen::element<std::int64_t>(1, 4, 16);
  problem.indexer.index_topk = problem.indexer.index_kpool * pick(1, 600);
  problem.indexer.index_kpool_always_select_tail = *rc::gen::arbitrary<bool>();
  problem.lengths = *rc::gen::nonEmpty<std::vector<std::int64_t>>(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 3000)));
  problem.lengths.push_back(1);
  problem.schedule = {pick(-1, 5), pick(0, 5), pick(0, 6)};
  problem.states_per_page = pick(63, 65);
  problem.seed = *rc::gen::arbitrary<std::uint64_t>();
  validate(problem, "random");
  RC_ASSERT(from_line(repeat_line(problem)) == problem);
}

TEST(Problem, ModesThatRotateTakePowersOfTwoOnly) {
  Problem problem;
  problem.indexer.index_head_dim = 96;
  expect_parts(config_error_of([&] { validate(problem, "p"); }),
               {"p/index_head_dim: found 96", "power of two", "vllm_fp8"});
  problem.mode = "hf_f32";
  EXPECT_NO_THROW(validate(problem, "p"));
}

TEST(Op, NamesAreTheFields) {
  EXPECT_EQ(to_string(Op::project), "project");
  EXPECT_EQ(to_string(Op::pool), "pool");
  EXPECT_EQ(to_string(Op::append), "append");
  EXPECT_EQ(to_string(Op::quantize_query), "quantize_query");
  EXPECT_EQ(to_string(Op::logits), "logits");
  EXPECT_EQ(to_string(Op::topk), "topk");
}

Problem attention_problem(const char* layer) {
  Problem problem;
  problem.attention = layer;
  problem.mode = "bf16";
  problem.indexer = {2, 64, 4, 4, true};
  problem.lengths = {37};
  return problem;
}
std::string attention_error(void (*change)(Problem& problem)) {
  Problem problem = attention_problem("hybrid");
  change(problem);
  return config_error_of([&] { validate(problem, "here"); });
}

TEST(AttentionProblem, ItsRepeatLineNamesTheLayerAndWhatItReads) {
  EXPECT_EQ(repeat_line(attention_problem("composite")),
            "indexpool verify --attention composite --mode bf16 --heads 2 --head-dim 64 "
            "--lengths 37");
  EXPECT_EQ(repeat_line(attention_problem("hybrid")),
            "indexpool verify --attention hybrid --mode bf16 --heads 2 --head-dim 64 --topk 4 "
            "--lengths 37");
  EXPECT_EQ(describe(attention_problem("hybrid")),
            "hybrid bf16 2x64 kpool 4 topk 4, 1 x 37 tokens, fill normal, seed 1");
  EXPECT_EQ(describe(attention_problem("feedback")),
            "feedback bf16 2x64 kpool 4, 1 x 37 tokens, fill normal, seed 1");
}

TEST(AttentionProblem, RefusesWhatNoLayerReads) {
  EXPECT_NO_THROW(validate(attention_problem("hybrid"), "here"));
  const auto expect = [](const std::string& error, const char* part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(attention_error([](Problem& p) { p.attention = "hybird"; }),
         "here/attention: unknown attention \"hybird\"; did you mean \"hybrid\"?");
  expect(attention_error([](Problem& p) { p.mode = "fp8"; }),
         "known for attention: f32, f16, bf16");
  expect(attention_error([](Problem& p) { p.indexer.index_head_dim = 96; }),
         "expected 32, 64 or 128");
  expect(attention_error([](Problem& p) { p.indexer.index_topk = 8192; }),
         "at most 8192 selected tokens");
  expect(attention_error([](Problem& p) { p.policy = "gated"; }), "here/policy: found gated");
  expect(attention_error([](Problem& p) { p.schedule.drafts = 2; }), "there is no decode");
  expect(attention_error([](Problem& p) { p.states_per_page = 3; }), "there is no paged cache");
}

TEST(AttentionProblem, IsAnAxisOfASuite) {
  const Problem problem = only(R"({"attention": ["hybrid"], "mode": ["bf16"], "heads": [2],
                                   "head_dim": [64], "topk": [4], "lengths": [[37]]})");
  EXPECT_EQ(problem, attention_problem("hybrid"));
  const std::string unknown = suite_error(R"([{"attention": ["composit"], "mode": ["bf16"]}])");
  EXPECT_NE(unknown.find("composite"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace indexpool
