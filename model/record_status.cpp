#include <array>

#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"

namespace indexpool {
namespace {

struct StatusRow {
  Status status;
  std::string_view name;
  int severity;  // an unsupported problem was not verified, so it must not end up as passed
};

constexpr std::array<StatusRow, 7> statuses = {{{Status::passed, "passed", 1},
                                                {Status::marginal, "marginal", 2},
                                                {Status::failed, "failed", 5},
                                                {Status::untrusted, "untrusted", 4},
                                                {Status::skipped, "skipped", 0},
                                                {Status::unsupported, "unsupported", 3},
                                                {Status::error, "error", 6}}};

const StatusRow& row(Status status) {
  for (const StatusRow& candidate : statuses) {
    if (candidate.status == status) return candidate;
  }
  throw InternalError("a Status outside its enumeration");
}

}  // namespace

std::string_view to_string(Status status) { return row(status).name; }

std::optional<Status> status_from_name(std::string_view name) {
  for (const StatusRow& candidate : statuses) {
    if (candidate.name == name) return candidate.status;
  }
  return std::nullopt;
}

Status worst(Status a, Status b) { return row(a).severity >= row(b).severity ? a : b; }

Status overall_status(const std::vector<Record>& records) {
  Status overall = Status::skipped;
  for (const Record& record : records) overall = worst(overall, record.verdict.status);
  return overall;
}

}  // namespace indexpool
