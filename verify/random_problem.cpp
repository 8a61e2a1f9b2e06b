#include "indexpool/verify/random_problem.hpp"

#include <string>
#include <vector>

#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/verify/random.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {
namespace {

template <class T>
T choose(const Random& random, std::int64_t index, const std::vector<T>& values) {
  return values[static_cast<std::size_t>(
      random.integer(index, 0, static_cast<std::int64_t>(values.size()) - 1))];
}

}  // namespace

Problem random_problem(std::uint64_t seed, std::int64_t number) {
  const Random random(mix(seed), static_cast<std::uint64_t>(number));
  Problem problem;
  std::vector<std::string> modes;
  for (const NumericMode& mode : numeric_modes()) modes.push_back(mode.name);
  problem.mode = choose(random, 0, modes);
  problem.fill = choose(random, 1, fill_names());
  problem.indexer.index_head_dim = choose<std::int64_t>(random, 2, {32, 32, 32, 64, 128});
  problem.indexer.index_n_heads = random.integer(3, 1, 9);
  problem.indexer.index_kpool = choose<std::int64_t>(random, 4, {1, 2, 3, 4, 4, 4, 5, 8, 16});
  problem.indexer.index_topk =
      problem.indexer.index_kpool * choose<std::int64_t>(random, 5, {1, 2, 3, 4, 7, 16});
  problem.indexer.index_kpool_always_select_tail = random.integer(6, 0, 3) != 0;
  problem.lengths.clear();
  const std::int64_t sequences = choose<std::int64_t>(random, 7, {1, 1, 2, 3});
  for (std::int64_t s = 0; s < sequences; ++s) {
    problem.lengths.push_back(random.integer(100 + s, s == 0 ? 1 : 0, 28));
  }
  problem.states_per_page = choose<std::int64_t>(random, 8, {1, 2, 3, 8, 32, 64});
  problem.schedule.prefill_tokens = random.coin(9) ? -1 : random.integer(10, 0, 40);
  problem.schedule.prefill_chunk = random.coin(11) ? 0 : random.integer(12, 1, 17);
  problem.schedule.drafts = random.integer(13, 0, 6);
  problem.seed = random.bits(14) % 1'000'000;
  return problem;
}

Problem random_policy_problem(std::uint64_t seed, std::int64_t number) {
  const Random random(mix(seed) + 1, static_cast<std::uint64_t>(number));
  const auto& rows = policies();
  // The first is the shipped form, which random_problem() draws.
  const auto last = static_cast<std::int64_t>(rows.size()) - 1;
  const PolicyInfo& policy = rows[static_cast<std::size_t>(random.integer(0, 1, last))];
  const bool scores = policy.grouping == Grouping::scores;
  const bool windows = policy.grouping == Grouping::windows;
  Problem problem;
  problem.policy = policy.name;
  std::vector<std::string> modes;
  for (const NumericMode& mode : pooling_modes()) modes.push_back(mode.name);
  problem.mode = scores ? "f32" : choose(random, 1, modes);
  problem.fill = choose(random, 2, fill_names());
  problem.indexer.index_head_dim =
      choose<std::int64_t>(random, 3, {32, 32, 64, 64, 128, 256, 512, 1024, 2048});
  problem.indexer.index_n_heads = random.integer(4, 1, 9);
  problem.indexer.index_kpool =
      scores ? choose<std::int64_t>(random, 5, {4, 8, 12, 60, 64, 100, 124, 128, 256})
             : choose<std::int64_t>(random, 5,
                                    windows ? std::vector<std::int64_t>{2, 4, 8, 16}
                                            : std::vector<std::int64_t>{1, 2, 3, 4, 5, 8, 16});
  problem.indexer.index_topk = problem.indexer.index_kpool;
  problem.lengths.clear();
  const std::int64_t sequences = choose<std::int64_t>(random, 6, {1, 1, 2, 3});
  const std::int64_t longest = problem.indexer.index_head_dim > 256 ? 5 : 24;
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t tokens = random.integer(100 + s, s == 0 ? 1 : 0, longest);
    problem.lengths.push_back(scores ? 37 * tokens : tokens);
  }
  problem.seed = random.bits(7) % 1'000'000;
  return problem;
}

Problem random_attention_problem(std::uint64_t seed, std::int64_t number) {
  const Random random(mix(seed) + 2, static_cast<std::uint64_t>(number));
  Problem problem;
  problem.attention = choose(random, 0, attention_layer_names());
  problem.mode = choose(random, 1, attention_mode_names());
  problem.fill = choose(random, 2, fill_names());
  IndexerConfig& indexer = problem.indexer;
  indexer.index_head_dim = choose<std::int64_t>(random, 3, {32, 32, 32, 64, 64, 128});
  indexer.index_n_heads = random.integer(4, 1, 4);
  indexer.index_kpool = choose<std::int64_t>(random, 5, {1, 2, 3, 4, 4, 5, 8, 16});
  indexer.index_topk = indexer.index_kpool;
  if (find_attention_layer(problem.attention).selects) {
    indexer.index_topk *= choose<std::int64_t>(random, 6, {1, 1, 2, 3, 7});
    indexer.index_kpool_always_select_tail = random.integer(7, 0, 3) != 0;
  }
  problem.lengths.clear();
  const std::int64_t sequences = choose<std::int64_t>(random, 8, {1, 1, 2, 3});
  // Chunks of 16 tokens, tiles of 32: a few of each.
  const std::int64_t longest = choose<std::int64_t>(random, 9, {9, 20, 40});
  for (std::int64_t s = 0; s < sequences; ++s)
    problem.lengths.push_back(random.integer(100 + s, s == 0 ? 1 : 0, longest));
  problem.seed = random.bits(10) % 1'000'000;
  return problem;
}

}  // namespace indexpool::verify
