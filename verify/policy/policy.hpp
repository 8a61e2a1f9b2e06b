// A published form of pooling through reference and kernels: its weights, then its pooled vectors,
// each with a certified verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/pooling.hpp"
#include "indexpool/model/problem.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::policy {

// Operands from the seed: vectors, gate scores, position bias and queries by the problem's fill,
// the rest drawn for the policy (make_operands.cpp says how).
PoolingInputs make_inputs(const Problem& problem);
BlockMaxInputs make_block_max_inputs(const Problem& problem);

// The same groups with their vectors in the opposite order, operands along; groups with absent
// vectors are left out. `kept`: which of the groups remain.
struct Reversed {
  PoolingInputs inputs;
  std::vector<std::size_t> kept;
};
Reversed reversed(const PoolingInputs& inputs);
// Rows of pool weights of those groups, in the opposite order of vectors.
std::vector<float> reversed(const PoolingInputs& inputs, const std::vector<float>& pool_weights,
                            const std::vector<std::size_t>& kept);

struct WeightsOutput {
  std::vector<float> pool_weights;  // [sets, m] or [G, m, D]
  OpRun run;                        // no launches: the weights are an operand
  std::string guards;
};
WeightsOutput run_weights(StageContext& context, const PoolingInputs& inputs);

struct PooledOutput {
  std::vector<std::byte> pooled;                 // [G, D] codes or mode.cache
  std::vector<float> scales;                     // [G]; empty when not quantised
  std::vector<kernels::PoolChecksum> checksums;  // [G]
  std::vector<std::int32_t> fallbacks;           // [G]
  OpRun run;
  std::string guards;
};
PooledOutput run_pool(StageContext& context, const PoolingInputs& inputs,
                      const std::vector<float>& pool_weights);

struct MaximaOutput {
  std::vector<float> maxima;
  OpRun run;
  std::string guards;
};
MaximaOutput run_block_max(StageContext& context, const BlockMaxInputs& inputs);

// One Record for the weights where a kernel makes them, one for the pooled vectors.
std::vector<Record> verify_policy(const Problem& problem, const Options& options);

}  // namespace indexpool::verify::policy
