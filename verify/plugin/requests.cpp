// The buffers of each operation, in the order of its struct in verify/plugin.h.
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/plugin/trip.hpp"
#include "indexpool/verify/stages.hpp"

namespace indexpool::verify::plugin {
namespace {

Input input_of(const std::string& name, const Tensor& tensor) { return {name, tensor.raw(), true}; }

Input stored_input(const Trip& trip, const char* shown, const char* name) {
  const auto found = trip.stored.find(name);
  if (found == trip.stored.end()) return {shown, {}, false};
  return input_of(shown, found->second);
}

Request request_for(const Trip& trip, Operation operation) {
  Request request;
  request.library = std::filesystem::absolute(trip.plugin.path).string();
  request.operation = operation;
  request.sizes = trip.sizes;
  request.logit_scale = static_cast<float>(trip.inputs().logit_scale);
  request.logits_stride = trip.stride;
  request.inputs.push_back({"sequences", std::as_bytes(std::span(trip.sequences)), true});
  return request;
}

void add_pool_outputs(const Trip& trip, bool optional, Request& request) {
  const indexpool_sizes& sizes = trip.sizes;
  request.outputs.push_back({"pool_codes",
                             trip.inputs().mode.cache,
                             {sizes.pools, sizes.index_head_dim},
                             true,
                             optional,
                             {}});
  request.outputs.push_back(
      {"pool_scales", DType::f32, {sizes.pools}, trip.quantised(), optional, {}});
}

void add_query_outputs(const Trip& trip, bool optional, Request& request) {
  const indexpool_sizes& sizes = trip.sizes;
  request.outputs.push_back({"query_codes",
                             trip.inputs().mode.cache,
                             {sizes.rows, sizes.index_n_heads, sizes.index_head_dim},
                             trip.quantised(),
                             optional,
                             {}});
  request.outputs.push_back({"query_scales",
                             DType::f32,
                             {sizes.rows, sizes.index_n_heads},
                             trip.quantised(),
                             optional,
                             {}});
}

void add_logits_output(const Trip& trip, bool optional, Request& request) {
  std::vector<char> ignored;
  for (const auto& query : query_rows(trip.inputs())) {
    const std::int64_t visible =
        reference::visible_pools(query.position, trip.inputs().config.index_kpool);
    for (std::int64_t p = 0; p < trip.stride; ++p) ignored.push_back(p < visible ? 0 : 1);
  }
  request.outputs.push_back(
      {"logits", DType::f32, {trip.sizes.rows, trip.stride}, true, optional, std::move(ignored)});
}

void add_selection_output(const Trip& trip, Request& request) {
  request.outputs.push_back(
      {"selection", DType::i32, {trip.sizes.rows, trip.sizes.selection_width}, true, false, {}});
}

}  // namespace

Request pool_request(const Trip& trip) {
  Request request = request_for(trip, Operation::pool);
  request.inputs.push_back(input_of("keys", trip.inputs().keys));
  request.inputs.push_back(input_of("gate_scores", trip.inputs().gate_scores));
  request.inputs.push_back(input_of("ape", trip.inputs().ape));
  add_pool_outputs(trip, false, request);
  return request;
}

Request quantize_query_request(const Trip& trip) {
  Request request = request_for(trip, Operation::quantize_query);
  request.inputs.push_back(input_of("queries", trip.inputs().queries));
  add_query_outputs(trip, false, request);
  return request;
}

Request logits_request(const Trip& trip) {
  Request request = request_for(trip, Operation::logits);
  request.inputs.push_back(trip.quantised() ? stored_input(trip, "query_codes", "q_codes")
                                            : input_of("query_codes", trip.inputs().queries));
  request.inputs.push_back(stored_input(trip, "query_scales", "q_scales"));
  request.inputs.push_back(input_of("head_weights", trip.inputs().head_weights));
  request.inputs.push_back(stored_input(trip, "pool_codes", "pool_codes"));
  request.inputs.push_back(stored_input(trip, "pool_scales", "pool_scales"));
  add_logits_output(trip, false, request);
  return request;
}

Request topk_request(const Trip& trip, std::span<const std::byte> logits) {
  Request request = request_for(trip, Operation::topk);
  request.inputs.push_back({"logits", logits, true});
  add_selection_output(trip, request);
  return request;
}

Request pipeline_request(const Trip& trip) {
  Request request = request_for(trip, Operation::pipeline);
  request.inputs.push_back(input_of("keys", trip.inputs().keys));
  request.inputs.push_back(input_of("gate_scores", trip.inputs().gate_scores));
  request.inputs.push_back(input_of("ape", trip.inputs().ape));
  request.inputs.push_back(input_of("queries", trip.inputs().queries));
  request.inputs.push_back(input_of("head_weights", trip.inputs().head_weights));
  add_pool_outputs(trip, true, request);
  add_query_outputs(trip, true, request);
  add_logits_output(trip, true, request);
  add_selection_output(trip, request);
  return request;
}

}  // namespace indexpool::verify::plugin
