// The attention around the pooling through reference and kernels: a layer's operations one after
// the other, each judged from what the one before stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/kernels/attention_args.hpp"
#include "indexpool/model/attention.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::attention {

// --- hybrid: T tokens of S sequences back to back, H heads of D channels ---
struct LinearBatch {
  std::vector<std::int64_t> lengths;  // [S]
  LinearAttentionInputs rows;         // of all tokens; its state is that of no sequence
  Tensor states;                      // [S, H, D, D] f32
};
// One sequence alone, or its tokens [begin, end).
LinearAttentionInputs sequence_of(const LinearBatch& batch, std::size_t sequence);
LinearBatch cut(const LinearBatch& batch, const std::vector<std::int64_t>& begin,
                const std::vector<std::int64_t>& end);

// The branches see different projections of a token: all operands are drawn independently.
// log_decay of `linear`, a and b of `fusion` are zero until the operations before have run. A
// query of `sparse` selects random whole pools among those it sees, and the forced tail.
struct HybridInputs {
  SafeGateInputs gate;
  LinearBatch linear;
  SparseAttentionInputs sparse;
  GateFusionInputs fusion;
};
HybridInputs make_hybrid(const Problem& problem);
std::int64_t key_heads_of(std::int64_t heads);  // two heads share one of keys where they can

// --- composite: one per sequence that has tokens ---
std::vector<CompositeAttentionInputs> make_composite(const Problem& problem);

// --- feedback: the groups of all sequences, what they pool, and one step's attention ---
struct FeedbackOperands {
  PoolingInputs pooling;  // of policy tfidf, with the counts before the step
  FeedbackInputs step;
  const AccessTerms& terms() const { return std::get<AccessTerms>(pooling.weights); }
};
FeedbackOperands make_feedback(const Problem& problem);

// --- stages ---
struct RowsOutput {
  std::vector<float> rows;
  OpRun run;
  std::string guards;
};
RowsOutput run_safe_gate(StageContext& context, const SafeGateInputs& inputs);
RowsOutput run_sparse(StageContext& context, const SparseAttentionInputs& inputs);
RowsOutput run_fusion(StageContext& context, const GateFusionInputs& inputs);

struct LinearOutput {
  std::vector<float> outputs;  // [T, H, V]
  std::vector<float> states;   // [S, H, K, V]
  OpRun run;
  std::string guards;
};
LinearOutput run_linear(StageContext& context, const LinearBatch& batch, bool chunked);

struct CompositeOutput {
  std::vector<float> queries, keys, outputs;  // [T, H, d] of all sequences
  OpRun run;
  std::string guards;
};
CompositeOutput run_composite(StageContext& context,
                              const std::vector<CompositeAttentionInputs>& sequences);

struct FeedbackOutput {
  std::vector<std::int32_t> accesses, groups_accessed;  // [G, m]
  OpRun run;
  std::string guards;
};
FeedbackOutput run_feedback(StageContext& context, const FeedbackInputs& step,
                            const AccessTerms& terms);

// One Record per operation of the problem's layer.
std::vector<Record> verify_attention(const Problem& problem, const Options& options);

}  // namespace indexpool::verify::attention
