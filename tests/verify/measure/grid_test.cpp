// Grids: products of axes, strict reading, and what the built-in ones promise.
#include "indexpool/verify/measure/grid.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::timing {
namespace {

std::string grid_text(const std::string& cases) {
  return fmt::format(
      R"({{"name": "mine", "why": "a test", "architecture": "glm-5.3-flash", "cases": [{}]}})",
      cases);
}

std::string error_of(const std::string& cases) {
  try {
    parse_grid(grid_text(cases), "mine.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Grids, ACaseIsTheProductOfItsAxes) {
  const Grid grid = parse_grid(
      grid_text(R"({"op": "logits", "kernel": ["logits_mma", "logits_e4m3"], "mode": ["vllm_fp8"],
                    "tokens": [64, 128], "batch": [1, 3], "rows": [1, 2]})"),
      "mine.json");
  ASSERT_EQ(grid.points.size(), 16u);
  EXPECT_EQ(grid.points.front(), (Point{"logits", "logits_mma", "vllm_fp8", 64, 1, 1}));
  EXPECT_EQ(grid.points.back(), (Point{"logits", "logits_e4m3", "vllm_fp8", 128, 3, 2}));
  EXPECT_EQ(grid.geometry.indexer.index_kpool, 4);
  EXPECT_EQ(grid.geometry.states_per_page, 64);
}

TEST(Grids, MostTokensLeavesOutTheLargerPoints) {
  const Grid grid = parse_grid(grid_text(R"({"op": "pool", "mode": ["bf16"], "tokens": [100, 200],
                                             "batch": [1, 2], "most_tokens": 200})"),
                               "mine.json");
  ASSERT_EQ(grid.points.size(), 3u);
  for (const Point& point : grid.points) EXPECT_LE(point.tokens * point.batch, 200);
}

TEST(Grids, ErrorsNameFilePointerAndTheNearMiss) {
  const std::string axes = R"("tokens": [64], "batch": [1])";
  const auto with = [&](const std::string& rest) { return "{" + rest + ", " + axes + "}"; };
  const struct {
    std::string cases, says;
  } rows[] = {
      {with(R"("op": "logit", "mode": ["bf16"])"), "mine.json: /cases/0/op"},
      {with(R"("op": "logit", "mode": ["bf16"])"), "did you mean \"logits\""},
      {with(R"("op": "topk", "mode": ["fp8"])"), "unknown numeric mode \"fp8\""},
      {with(R"("op": "topk", "kernel": ["logits_mma"], "mode": ["bf16"])"), "unknown kernel"},
      {with(R"("op": "topk", "mode": [])"), "found an empty list"},
      {with(R"("op": "topk", "mode": ["bf16"], "rows": [65])"), "no point is left"},
      {with(R"("op": "topk", "mode": ["bf16"], "row": [1])"), "row"},
      {R"({"op": "topk", "mode": ["bf16"], "tokens": [0], "batch": [1]})", "/tokens/0"},
      {"", "found no case"}};
  for (const auto& row : rows) {
    const std::string error = error_of(row.cases);
    EXPECT_NE(error.find(row.says), std::string::npos) << row.cases << "\n" << error;
  }
}

TEST(Grids, AnUnknownNameListsTheBuiltInOnes) {
  try {
    load_grid("latncy");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean \"latency\""), std::string::npos) << text;
    EXPECT_NE(text.find("quick"), std::string::npos) << text;
  }
}

TEST(Grids, TheLatencyGridReachesFrom4KTo10MTokensAndFrom1To256Sequences) {
  const Grid grid = load_grid("latency");
  EXPECT_GE(grid.points.size(), 120u);
  std::set<std::string> seen;
  const auto by = [](auto member) {
    return [member](const Point& a, const Point& b) { return a.*member < b.*member; };
  };
  const auto [least, most] = std::ranges::minmax_element(grid.points, by(&Point::tokens));
  EXPECT_EQ(least->tokens, 4096);
  EXPECT_EQ(most->tokens, 10 * 1024 * 1024);
  const auto [few, many] = std::ranges::minmax_element(grid.points, by(&Point::batch));
  EXPECT_EQ(few->batch, 1);
  EXPECT_EQ(many->batch, 256);
  for (const Point& point : grid.points) EXPECT_TRUE(seen.insert(describe(point)).second);
  for (const std::string& op : operation_names()) {
    EXPECT_TRUE(std::ranges::any_of(grid.points, [&](const Point& p) { return p.op == op; })) << op;
  }
}

}  // namespace
}  // namespace indexpool::verify::timing
