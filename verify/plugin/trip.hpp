// A case on its way through a plugin: what each operation gets, and what is handed on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "indexpool/verify/foreign/foreign.hpp"
#include "indexpool/verify/plugin/plugin.hpp"
#include "indexpool/verify/plugin/shared_memory.hpp"

namespace indexpool::verify::plugin {

using Tensors = std::map<std::string, Tensor>;

struct Trip {
  const Plugin& plugin;
  const ForeignCase& foreign;
  indexpool_sizes sizes = {};
  std::vector<indexpool_sequence> sequences;
  std::int64_t stride = 0;  // of the logits
  // "pool_codes", "pool_scales", "q_codes", "q_scales", "logits": the plugin's own where they were
  // right, the reference's otherwise.
  Tensors stored;

  const IndexerInputs& inputs() const { return foreign.test_case.inputs; }
  bool quantised() const { return inputs().mode.quantised(); }
};
Trip start_trip(const Plugin& plugin, const ForeignCase& foreign, std::uint64_t seed);

// What an operation without an output of the plugin's own hands on.
void store_reference_pools(Trip& trip);
void store_reference_queries(Trip& trip);
void store_reference_logits(Trip& trip);
// Columns of rows that do not see the pool: infinity, so that whoever looks there is led astray.
void hide_invisible(const IndexerInputs& inputs, std::int64_t stride, std::span<float> logits);

Request pool_request(const Trip& trip);
Request quantize_query_request(const Trip& trip);
Request logits_request(const Trip& trip);
Request topk_request(const Trip& trip, std::span<const std::byte> logits);
Request pipeline_request(const Trip& trip);

}  // namespace indexpool::verify::plugin
