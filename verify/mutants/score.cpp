#include "indexpool/verify/mutants/score.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace indexpool::verify {
namespace {

constexpr double enough_percent = 98;  // in all; of some classes every mutant

void add(const Fate& fate, Score& score) {
  ++score.mutants;
  if (!fate.mutant->equivalent.empty()) {
    ++score.equivalent;
    return;
  }
  score.killed += fate.killed ? 1 : 0;
  score.killed_by_its_check += fate.killed_by_its_check ? 1 : 0;
}

}  // namespace

std::vector<Score> scores_of(std::span<const Fate> fates) {
  std::vector<Score> scores;
  for (const MutantClass& known : mutant_classes()) {
    Score score{std::string(known.name), known.must_be_complete};
    for (const Fate& fate : fates)
      if (fate.mutant->fault == known.name) add(fate, score);
    if (score.mutants > 0) scores.push_back(score);
  }
  Score all{"all"};
  for (const Fate& fate : fates) add(fate, all);
  scores.push_back(all);
  return scores;
}

std::string why_not_enough(std::span<const Score> scores, std::span<const Fate> fates) {
  for (const Fate& fate : fates)
    if (fate.killed && !fate.mutant->equivalent.empty())
      return fmt::format("{} was killed, but the table says that it is equivalent",
                         fate.mutant->id);
  for (const Score& score : scores) {
    const double needed = score.must_be_complete ? 100 : score.name == "all" ? enough_percent : 0;
    if (score.percent() < needed)
      return fmt::format(
          "{}: {} of {} mutants killed by the check that is named for them; {} % "
          "are needed",
          score.name, score.killed_by_its_check, score.counted(), needed);
  }
  return "";
}

}  // namespace indexpool::verify
