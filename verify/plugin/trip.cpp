#include "indexpool/verify/plugin/trip.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/stored.hpp"

namespace indexpool::verify::plugin {
namespace {

std::int32_t code_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return INDEXPOOL_F32;
    case DType::bf16:
      return INDEXPOOL_BF16;
    case DType::f16:
      return INDEXPOOL_F16;
    case DType::e4m3:
      return INDEXPOOL_E4M3;
    case DType::i8:
      return INDEXPOOL_I8;
    default:
      break;
  }
  throw InternalError("a numeric mode uses a dtype that verify/plugin.h does not name");
}

std::int32_t code_of(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::none:
      return INDEXPOOL_SCALE_NONE;
    case ScaleRule::power_of_two:
      return INDEXPOOL_SCALE_POWER_OF_TWO;
    case ScaleRule::amax:
      return INDEXPOOL_SCALE_AMAX;
  }
  throw InternalError("a numeric mode uses a scale rule that verify/plugin.h does not name");
}

indexpool_sizes sizes_of(const IndexerInputs& inputs) {
  const IndexerConfig& config = inputs.config;
  const NumericMode& mode = inputs.mode;
  indexpool_sizes sizes = {};
  sizes.rows = inputs.rows();
  sizes.pools = first_pools(inputs).back();
  sizes.sequence_count = static_cast<std::int64_t>(inputs.sequences.size());
  sizes.index_n_heads = static_cast<std::int32_t>(config.index_n_heads);
  sizes.index_head_dim = static_cast<std::int32_t>(config.index_head_dim);
  sizes.index_kpool = static_cast<std::int32_t>(config.index_kpool);
  sizes.index_topk = static_cast<std::int32_t>(config.index_topk);
  sizes.always_select_tail = config.index_kpool_always_select_tail ? 1 : 0;
  sizes.selection_width = static_cast<std::int32_t>(config.selection_width());
  sizes.storage_dtype = code_of(mode.storage);
  sizes.pooled_dtype = code_of(mode.pooled);
  sizes.cache_dtype = code_of(mode.cache);
  sizes.scale_rule = code_of(mode.scale);
  sizes.hadamard = mode.hadamard ? 1 : 0;
  sizes.storage_products = mode.pool_rounding == PoolRounding::storage_products ? 1 : 0;
  return sizes;
}

std::vector<indexpool_sequence> sequences_of(const IndexerInputs& inputs) {
  const std::vector<std::int64_t> first_pool = first_pools(inputs);
  std::vector<indexpool_sequence> sequences;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    sequences.push_back({sequence.first_row, sequence.length, first_pool[s],
                         first_pool[s + 1] - first_pool[s], sequence.first_key});
  }
  return sequences;
}

template <class T>
Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  require(tensor.raw().size() == values.size() * sizeof(T), "the values fill the tensor");
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), tensor.raw().size());
  return tensor;
}

// The stored tensors as the checks know them.
StoredPools stored_pools(const Trip& trip) {
  const Tensor& codes = trip.stored.at("pool_codes");
  StoredPools stored;
  stored.pools = trip.sizes.pools;
  stored.head_dim = trip.sizes.index_head_dim;
  for (std::int64_t i = 0; i < codes.size(); ++i) stored.codes.push_back(codes.at(i));
  for (std::int64_t p = 0; p < stored.pools; ++p) {
    stored.scales.push_back(trip.quantised() ? trip.stored.at("pool_scales").at(p) : 1);
  }
  return stored;
}

}  // namespace

Trip start_trip(const Plugin& plugin, const ForeignCase& foreign, std::uint64_t seed) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  return {plugin, foreign, sizes_of(inputs), sequences_of(inputs), logits_stride(inputs, seed), {}};
}

void store_reference_pools(Trip& trip) {
  const IndexerInputs& inputs = trip.inputs();
  const auto dim = static_cast<std::size_t>(inputs.config.index_head_dim);
  const reference::Pooled pooled = reference::pool(inputs);
  Tensor codes(inputs.mode.cache, {trip.sizes.pools, inputs.config.index_head_dim});
  Tensor scales(DType::f32, {trip.sizes.pools});
  for (std::int64_t p = 0; p < trip.sizes.pools; ++p) {
    const std::size_t first = static_cast<std::size_t>(p) * dim;
    const auto row = std::span(pooled.rotated.value).subspan(first, dim);
    reference::Quantised stored{1, {row.begin(), row.end()}};
    if (trip.quantised()) stored = reference::quantise(row, inputs.mode);
    for (std::size_t c = 0; c < dim; ++c) {
      codes.set(static_cast<std::int64_t>(first + c), stored.codes[c]);
    }
    scales.set(p, stored.scale);
  }
  trip.stored["pool_codes"] = codes;
  if (trip.quantised()) trip.stored["pool_scales"] = scales;
}

void store_reference_queries(Trip& trip) {
  if (!trip.quantised()) return;  // they are the queries themselves
  const StoredQueries queries = reference_queries(trip.inputs());
  const std::int64_t rows = trip.sizes.rows, heads = trip.sizes.index_n_heads;
  trip.stored["q_codes"] =
      tensor_of(trip.inputs().mode.cache, {rows, heads, trip.sizes.index_head_dim}, queries.codes);
  trip.stored["q_scales"] = tensor_of(DType::f32, {rows, heads}, queries.scales);
}

void store_reference_logits(Trip& trip) {
  const IndexerInputs& inputs = trip.inputs();
  Operands operands;
  const Tensor& queries = trip.quantised() ? trip.stored.at("q_codes") : inputs.queries;
  for (std::int64_t i = 0; i < queries.size(); ++i) operands.queries.push_back(queries.at(i));
  if (trip.quantised()) {
    const Tensor& scales = trip.stored.at("q_scales");
    for (std::int64_t i = 0; i < scales.size(); ++i) operands.query_scales.push_back(scales.at(i));
  }
  operands.pools = stored_pools(trip);
  const LogitBounds bounds = logit_bounds(inputs, operands, reference::f32_any_order());
  Tensor logits(DType::f32, {trip.sizes.rows, trip.stride});
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto& expected = bounds.sequences[static_cast<std::size_t>(query.request)];
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    for (std::int64_t p = 0; p < visible; ++p) {
      const std::int64_t at = query.position * expected.shape[1] + p;
      logits.set(row * trip.stride + p, expected.value[static_cast<std::size_t>(at)]);
    }
    ++row;
  }
  hide_invisible(inputs, trip.stride, logits.as<float>());
  trip.stored["logits"] = logits;
}

void hide_invisible(const IndexerInputs& inputs, std::int64_t stride, std::span<float> logits) {
  std::size_t first = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto row = logits.subspan(first, static_cast<std::size_t>(stride));
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    std::fill(row.begin() + visible, row.end(), std::numeric_limits<float>::infinity());
    first += row.size();
  }
}

}  // namespace indexpool::verify::plugin
