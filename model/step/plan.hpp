// From a model and how it is served to the operations of a step on one rank, in order.
#pragma once

#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/step/operation.hpp"

namespace indexpool::step {

struct Serving {
  // Splits, formats and engine as for memory; tokens, sequences and budgets are not looked at.
  // With drafts the drafting layers run after the others, once for each drafted token.
  MemoryRequest request;
  Phase phase = Phase::decode;
  bool expert_parallel = false;  // whole experts on each rank instead of a slice of all
};

struct Plan {
  std::vector<Operation> operations;
  int sections = 0;          // 1 to this
  bool has_indexer = false;  // an operation is IndexerKernels
};

// Throws ConfigError for splits that do not come out even and formats a layer cannot have.
Plan plan_step(const Architecture& architecture, const Serving& serving);

// Size of a step of `serving` at `tokens` of context in each of `sequences`: a decode step, or the
// last chunk of one prompt of so many tokens (sequences then follow each other). ConfigError for
// sizes below 1 or beyond 2^40 tokens, 2^24 sequences.
Size size_of(const Serving& serving, std::int64_t tokens, std::int64_t sequences);

// Of operations that take one row of each sequence.
Size drafting_size(const Size& size);
// With the share of each context that one of the ranks holds which share it.
Size on_one_rank(const Serving& serving, Size size);

}  // namespace indexpool::step
