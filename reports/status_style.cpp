#include "indexpool/reports/status_style.hpp"

#include <array>

#include "indexpool/model/error.hpp"

namespace indexpool::reports {

std::span<const StatusStyle> status_styles() {
  static const std::array<StatusStyle, 7> styles = {{
      {Status::error, "!", "Error",
       "It crashed, hung, or the executor refused what it did (divergent barrier, access outside a "
       "buffer).",
       "\x1b[1;31m"},
      {Status::failed, "✗", "Failed",
       "At least one check did not hold. The reason names the first violation and where it is.",
       "\x1b[1;31m"},
      {Status::untrusted, "?", "Not trusted",
       "A check could not have failed: all zeros, a bound looser than the signal, or no row whose "
       "selection the bounds decide. Never counted as green.",
       "\x1b[33m"},
      {Status::unsupported, "–", "Not all verified",
       "The implementation does not take this problem; the reason says why.", "\x1b[2m"},
      {Status::marginal, "~", "Passed, with little margin",
       "Every check held, but an error came close enough to its bound to deserve a look.",
       "\x1b[33m"},
      {Status::passed, "✓", "Passed", "Every check held.", "\x1b[32m"},
      {Status::skipped, "–", "Nothing was verified", "Not run, by choice or for want of a device.",
       "\x1b[2m"},
  }};
  return styles;
}

const StatusStyle& style(Status status) {
  for (const StatusStyle& row : status_styles()) {
    if (row.status == status) return row;
  }
  throw InternalError("a status without a row in reports/status_style.cpp");
}

}  // namespace indexpool::reports
