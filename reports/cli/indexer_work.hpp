// The indexer's kernels as a step's plan wants them: declared work at any size, without memory.
#pragma once

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/step/predict.hpp"

namespace indexpool::cli {

// append (or pool, in a prefill), quantize_query, logits and topk of one layer. `request` says
// whether keys are pooled and how they are stored. Each sequence's rows close a pool, the dearest
// case of append.
step::IndexerWork indexer_work(const Architecture& architecture, const MemoryRequest& request,
                               step::Phase phase);

// Rows of a step up to which the kernels' work is declared: they look at each row's position.
inline constexpr std::int64_t most_rows = std::int64_t{1} << 20;

}  // namespace indexpool::cli
