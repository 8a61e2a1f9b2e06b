// Counts what a check compared and keeps the first violation.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "indexpool/model/record.hpp"

namespace indexpool::verify {

class Tally {
 public:
  explicit Tally(std::string name) { check_.name = std::move(name); }

  // One comparison; `utilisation` is error over bound. `reason()` is asked for the first violation.
  template <class Reason>
  void compare(bool held, double utilisation, const Reason& reason) {
    ++check_.compared;
    if (held) {
      check_.utilisation = std::max(check_.utilisation, utilisation);
      return;
    }
    if (check_.violations++ == 0) check_.reason = reason();
    check_.status = Status::failed;
  }
  template <class Reason>
  void compare(bool held, const Reason& reason) {
    compare(held, 0, reason);
  }
  // The check says nothing: not passed, unless something failed.
  void distrust(std::string reason) {
    if (check_.violations > 0) return;
    check_.status = Status::untrusted;
    check_.reason = std::move(reason);
  }
  // Held, but closer to the bound than rounding errors usually get.
  void watch(double high_utilisation) {
    if (check_.status != Status::passed || check_.utilisation <= high_utilisation) return;
    check_.status = Status::marginal;
    check_.reason = "an error of " + std::to_string(check_.utilisation) + " of its bound";
  }
  void note(std::string text) {
    if (check_.reason.empty()) check_.reason = std::move(text);
  }
  // `open` of the elements compared may be anything, because binary32 may overflow on the way.
  void excuse(std::int64_t open) {
    if (open == 0) return;
    std::string text = std::to_string(open);
    text.append(" of ").append(std::to_string(check_.compared));
    text.append(" values may overflow binary32 in a correct kernel: not judged");
    if (2 * open > check_.compared) {
      distrust(std::move(text));
    } else {
      note(std::move(text));
    }
  }
  std::int64_t compared() const { return check_.compared; }
  Check finish() && { return std::move(check_); }

 private:
  Check check_;
};

// How far `value` lies from `reference` towards the end of [low, high] on its side: 0 to 1.
inline double utilisation(double value, double reference, double low, double high) {
  if (value == reference || high - low == std::numeric_limits<double>::infinity()) return 0;
  const double room = value > reference ? high - reference : reference - low;
  const double error = value > reference ? value - reference : reference - value;
  return room > 0 ? error / room : 2;
}

}  // namespace indexpool::verify
