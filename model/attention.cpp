#include "indexpool/model/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

void require_shape(const char* name, const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return;
  throw ConfigError(
      fmt::format("{}: shape {}, expected {}", name, to_string(tensor.shape()), to_string(shape)));
}
void require_dtype(const char* name, const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return;
  throw ConfigError(fmt::format("{}: {} elements, expected {}", name, info(tensor.dtype()).name,
                                info(dtype).name));
}
void require_storage(const char* name, const Tensor& tensor, std::size_t axes) {
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::bf16 && tensor.dtype() != DType::f16)
    throw ConfigError(
        fmt::format("{}: {} elements, expected f32, bf16 or f16", name, info(tensor.dtype()).name));
  if (tensor.shape().size() != axes)
    throw ConfigError(
        fmt::format("{}: shape {}, expected {} axes", name, to_string(tensor.shape()), axes));
}

void require_between(const char* name, const Tensor& tensor, double low, double high) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.at(i);
    if (!(x >= low && x <= high))
      throw ConfigError(
          fmt::format("{}: element {} is {}, expected {} to {}", name, i, x, low, high));
  }
}
void require_finite(const char* name, const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (!std::isfinite(tensor.at(i)))
      throw ConfigError(
          fmt::format("{}: element {} is {}, expected a finite number", name, i, tensor.at(i)));
  }
}
void require_same_storage(const char* name, const Tensor& tensor, const Tensor& queries) {
  require_dtype(name, tensor, queries.dtype());
  require_finite(name, tensor);
}

// Distinct tokens of [0, tokens) and -1.
void require_selection(const Tensor& selection, std::int64_t tokens) {
  const auto all = selection.as<std::int32_t>();
  const std::int64_t width = selection.dim(1);
  std::vector<std::int32_t> row;
  for (std::int64_t n = 0; n < selection.dim(0); ++n) {
    const auto first = all.begin() + n * width;
    row.assign(first, first + width);
    std::sort(row.begin(), row.end());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] < -1 || row[i] >= tokens)
        throw ConfigError(fmt::format("selection: row {} selects token {}, expected -1 to {}", n,
                                      row[i], tokens - 1));
      if (i > 0 && row[i] >= 0 && row[i] == row[i - 1])
        throw ConfigError(fmt::format("selection: row {} selects token {} twice", n, row[i]));
    }
  }
}

}  // namespace

void validate(const LinearAttentionInputs& in) {
  require_storage("queries", in.queries, 3);
  require_storage("values", in.values, 3);
  const std::int64_t tokens = in.queries.dim(0), heads = in.queries.dim(1);
  const std::int64_t keys = in.queries.dim(2), values = in.values.dim(2);
  require_shape("keys", in.keys, {tokens, heads, keys});
  require_shape("values", in.values, {tokens, heads, values});
  require_shape("log_decay", in.log_decay, {tokens, heads, keys});
  require_shape("beta", in.beta, {tokens, heads});
  require_shape("state", in.state, {heads, keys, values});
  require_finite("queries", in.queries);
  require_same_storage("keys", in.keys, in.queries);
  require_same_storage("values", in.values, in.queries);
  require_dtype("log_decay", in.log_decay, DType::f32);
  require_dtype("beta", in.beta, DType::f32);
  require_dtype("state", in.state, DType::f32);
  require_between("log_decay", in.log_decay, lowest_log_decay, 0);
  require_between("beta", in.beta, 0, 1);
  require_finite("state", in.state);
  if (!(in.eps >= 1e-12f && in.eps <= 1))
    throw ConfigError(fmt::format("eps: found {}, expected 1e-12 to 1", in.eps));
}

void validate(const SafeGateInputs& in) {
  require_storage("features", in.features, 3);
  require_shape("a_log", in.a_log, {in.features.dim(1)});
  require_shape("dt_bias", in.dt_bias, {in.features.dim(1), in.features.dim(2)});
  require_dtype("a_log", in.a_log, DType::f32);
  require_dtype("dt_bias", in.dt_bias, DType::f32);
  require_finite("features", in.features);
  require_between("a_log", in.a_log, -80, 20);
  require_finite("dt_bias", in.dt_bias);
}

void validate(const SparseAttentionInputs& in) {
  require_storage("queries", in.queries, 3);
  require_storage("keys", in.keys, 3);
  require_storage("values", in.values, 3);
  const std::int64_t tokens = in.keys.dim(0), key_heads = in.keys.dim(1);
  require_shape("keys", in.keys, {tokens, key_heads, in.queries.dim(2)});
  require_shape("values", in.values, {tokens, key_heads, in.values.dim(2)});
  if (key_heads < 1 || in.queries.dim(1) % key_heads != 0)
    throw ConfigError(fmt::format("keys: {} heads, expected a divisor of the queries' {}",
                                  key_heads, in.queries.dim(1)));
  require_finite("queries", in.queries);
  require_same_storage("keys", in.keys, in.queries);
  require_same_storage("values", in.values, in.queries);
  require_dtype("selection", in.selection, DType::i32);
  if (in.selection.shape().size() != 2 || in.selection.dim(0) != in.queries.dim(0))
    throw ConfigError(fmt::format("selection: shape {}, expected one row for each of {} queries",
                                  to_string(in.selection.shape()), in.queries.dim(0)));
  require_selection(in.selection, tokens);
}

void validate(const GateFusionInputs& in) {
  require_dtype("a", in.a, DType::f32);
  require_dtype("b", in.b, DType::f32);
  require_dtype("gate_logits", in.gate_logits, DType::f32);
  require_storage("a", in.a, 3);
  require_shape("b", in.b, in.a.shape());
  require_shape("gate_logits", in.gate_logits, {in.a.dim(0), in.a.dim(1)});
  for (std::int64_t i = 0; i < in.gate_logits.size(); ++i) {
    if (std::isnan(in.gate_logits.at(i)))
      throw ConfigError(fmt::format("gate_logits: element {} is not a number", i));
  }
}

void validate(const CompositeAttentionInputs& in) {
  require_storage("composites", in.composites, 3);
  const std::int64_t heads = in.composites.dim(1), dim = in.composites.dim(2);
  require_shape("query_weight", in.query_weight, {heads, dim, dim});
  require_shape("key_weight", in.key_weight, {heads, dim, dim});
  require_shape("values", in.values, in.composites.shape());
  require_finite("composites", in.composites);
  require_same_storage("query_weight", in.query_weight, in.composites);
  require_same_storage("key_weight", in.key_weight, in.composites);
  require_same_storage("values", in.values, in.composites);
}

void validate(const FeedbackInputs& in, const AccessTerms& terms) {
  const Shape shape = terms.accesses.shape();
  if (shape.size() != 2)
    throw ConfigError(
        fmt::format("accesses: shape {}, expected one row for each group", to_string(shape)));
  require_shape("groups_accessed", terms.groups_accessed, shape);
  require_shape("attention_mass", in.attention_mass, shape);
  require_shape("tokens", in.tokens, shape);
  require_dtype("attention_mass", in.attention_mass, DType::f32);
  require_dtype("tokens", in.tokens, DType::i32);
  require_dtype("accesses", terms.accesses, DType::i32);
  require_dtype("groups_accessed", terms.groups_accessed, DType::i32);
  // A mass may come out a little above 1 of sums in binary32.
  require_between("attention_mass", in.attention_mass, 0, 1.001);
  require_between("accesses", terms.accesses, 0, most_accesses);
}

}  // namespace indexpool
