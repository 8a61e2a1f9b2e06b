// One function per operation: run it, check it, write its record, hand its output on.
#pragma once

#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reference/golden.hpp"
#include "indexpool/verify/cache_layout.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/timeline.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify {

// A case on its way through the operations. What an operation hands on is the kernel's output where
// it was right and the reference's where it was not, so that each operation is judged by itself.
struct Journey {
  const Case& test_case;
  const Options& options;
  bool about_ties = false;                   // of the fill
  std::vector<reference::Agreement> golden;  // empty when the case has no answers
  Timeline timeline;
  CacheLayout layout;

  std::vector<std::byte> cache;  // pages
  StoredQueries queries;
  std::int64_t stride = 0;  // of the logits
  std::vector<float> logits;
  LogitBounds bounds;
  std::vector<Record> records;
};

void verify_cache(Journey& journey);  // pool, append
void verify_queries(Journey& journey);
void verify_logits(Journey& journey);
void verify_topk(Journey& journey);

// Whether an operation's output may be handed on.
inline bool usable(const Verdict& verdict) {
  return verdict.status == Status::passed || verdict.status == Status::marginal ||
         verdict.status == Status::untrusted;
}

// The reference alone against the case's answers: one record per operation that has some.
std::vector<Record> reference_records(const Case& test_case, const Options& options);
// The reference in binary64 against itself in binary128, on the first tokens of a case.
std::vector<Record> precision_records(const Case& test_case, const Options& options);
Record project_record(const Case& test_case, const Options& options,
                      const std::vector<reference::Agreement>& golden);

}  // namespace indexpool::verify
