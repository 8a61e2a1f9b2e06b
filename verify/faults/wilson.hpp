// How well a share is known from a number of trials.
#pragma once

#include <cstdint>

namespace indexpool::verify::faults {

struct Share {
  double value = 0, low = 0, high = 1;  // 0 to 1
};

// `successes` of `trials` with Wilson's score interval of 95 % (E. B. Wilson, J. Am. Stat. Assoc.
// 22, 1927), which stays within 0 to 1 and says something when all succeed. trials 0: 0 to 1.
Share wilson(std::int64_t successes, std::int64_t trials);

// The largest rate that 0 of `runs` leaves likely at 95 %: 3 / runs, the rule of three
// (Hanley and Lippman-Hand, JAMA 249, 1983); 1 without runs. With `seen` > 0: Wilson's upper end.
double rate_bound(std::int64_t seen, std::int64_t runs);

}  // namespace indexpool::verify::faults
