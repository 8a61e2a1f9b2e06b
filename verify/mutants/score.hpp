// How many mutants were killed, by class and in all.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "indexpool/verify/mutants/mutant.hpp"

namespace indexpool::verify {

struct Fate {
  const Mutant* mutant = nullptr;
  bool killed = false, killed_by_its_check = false;
};

struct Score {
  std::string name;  // of the class, or "all"
  bool must_be_complete = false;
  int mutants = 0, equivalent = 0, killed = 0, killed_by_its_check = 0;

  // Equivalent mutants cannot be killed and do not count.
  int counted() const { return mutants - equivalent; }
  double percent() const { return counted() == 0 ? 100 : 100.0 * killed_by_its_check / counted(); }
};

// One per class that has mutants, in the order of mutant_classes(), then "all".
std::vector<Score> scores_of(std::span<const Fate> fates);
// An equivalent mutant that was killed, a class that had to be complete and is not, less than 98 %
// in all: "" when there is none of these.
std::string why_not_enough(std::span<const Score> scores, std::span<const Fate> fates);

}  // namespace indexpool::verify
