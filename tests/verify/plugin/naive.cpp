#include "naive.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numbers.hpp"

namespace naive {
namespace {

// Softmax over the pool's tokens of one channel, and the sum of keys under it.
double pooled_channel(const indexpool_pool_args& a, std::int64_t first_row, std::int64_t channel) {
  const indexpool_sizes& z = *a.sizes;
  const std::int64_t dim = z.index_head_dim;
  std::vector<double> scores;
  for (std::int64_t j = 0; j < z.index_kpool; ++j) {
    const double gate = load(z.storage_dtype, a.gate_scores, (first_row + j) * dim + channel);
    scores.push_back(static_cast<float>(gate) + a.ape[j * dim + channel]);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0, sum = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (std::int64_t j = 0; j < z.index_kpool; ++j) {
    const double key = load(z.storage_dtype, a.keys, (first_row + j) * dim + channel);
    const double weight = scores[static_cast<std::size_t>(j)] / total;
    sum += z.storage_products != 0
               ? rounded(z.storage_dtype, rounded(z.storage_dtype, weight) * key)
               : weight * key;
  }
  return rounded(z.pooled_dtype, sum);
}

// Sylvester's matrix: entry (i, j) is -1 to the number of ones in i & j.
void rotate(const indexpool_sizes& z, std::vector<double>& vector) {
  if (z.hadamard == 0) return;
  const std::vector<double> given = vector;
  for (std::size_t i = 0; i < given.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < given.size(); ++j) {
      sum += (std::popcount(i & j) & 1) != 0 ? -given[j] : given[j];
    }
    vector[i] = rounded(z.pooled_dtype, sum / std::sqrt(static_cast<double>(given.size())));
  }
}

double scale_of(const indexpool_sizes& z, const std::vector<double>& vector) {
  double amax = 1e-4;
  for (const double value : vector) amax = std::max(amax, std::fabs(value));
  if (z.scale_rule == INDEXPOOL_SCALE_POWER_OF_TWO) {
    return std::exp2(std::ceil(std::log2(static_cast<float>(amax) / 448.0f)));
  }
  return static_cast<float>(amax) / (z.cache_dtype == INDEXPOOL_I8 ? 127.0f : 448.0f);
}

// Rotates and stores row `row` of codes, and its scale where there are scales.
void keep(const indexpool_sizes& z, std::vector<double> vector, std::int64_t row,
          const indexpool_output& codes, const indexpool_output& scales) {
  rotate(z, vector);
  double scale = 1;
  if (z.scale_rule != INDEXPOOL_SCALE_NONE) {
    scale = scale_of(z, vector);
    static_cast<float*>(scales.data)[row] = static_cast<float>(scale);
  }
  for (std::size_t c = 0; c < vector.size(); ++c) {
    const auto at = row * static_cast<std::int64_t>(vector.size()) + static_cast<std::int64_t>(c);
    store(z.cache_dtype, codes.data, at, vector[c] / scale);
  }
}

double logit(const indexpool_logits_args& a, std::int64_t row, std::int64_t pool) {
  const indexpool_sizes& z = *a.sizes;
  const bool scaled = z.scale_rule != INDEXPOOL_SCALE_NONE;
  const std::int64_t dim = z.index_head_dim;
  double sum = 0;
  for (std::int64_t h = row * z.index_n_heads; h < (row + 1) * z.index_n_heads; ++h) {
    double dot = 0;
    for (std::int64_t c = 0; c < dim; ++c) {
      dot += load(scaled ? z.cache_dtype : z.storage_dtype, a.query_codes, h * dim + c) *
             load(z.cache_dtype, a.pool_codes, pool * dim + c);
    }
    sum += static_cast<double>(a.head_weights[h]) * a.logit_scale *
           (scaled ? a.query_scales[h] : 1.0f) * std::max(dot, 0.0);
  }
  return sum * (scaled ? a.pool_scales[pool] : 1.0f);
}

void select(const indexpool_topk_args& a, std::int64_t position, std::int64_t first_key,
            const float* scores, std::int32_t* row) {
  const indexpool_sizes& z = *a.sizes;
  const std::int64_t kpool = z.index_kpool, visible = (position + 1) / kpool;
  std::vector<std::int64_t> pools;
  for (std::int64_t p = 0; p < visible; ++p) {
    if (!std::isnan(scores[p])) pools.push_back(p);
  }
  std::stable_sort(pools.begin(), pools.end(),
                   [&](std::int64_t x, std::int64_t y) { return scores[x] > scores[y]; });
  pools.resize(std::min(pools.size(), static_cast<std::size_t>(z.index_topk / kpool)));
  std::sort(pools.begin(), pools.end());
  std::fill_n(row, z.selection_width, -1);
  std::int32_t* out = row;
  for (const std::int64_t p : pools) {
    for (std::int64_t j = 0; j < kpool; ++j) {
      *out++ = static_cast<std::int32_t>(first_key + p * kpool + j);
    }
  }
  if (z.always_select_tail == 0) return;
  out = row + z.index_topk;
  for (std::int64_t t = visible * kpool; t <= position; ++t) {
    *out++ = static_cast<std::int32_t>(first_key + t);
  }
}

}  // namespace

int pool(const indexpool_pool_args* args) {
  const indexpool_sizes& z = *args->sizes;
  for (std::int64_t s = 0; s < z.sequence_count; ++s) {
    const indexpool_sequence& sequence = z.sequences[s];
    for (std::int64_t p = 0; p < sequence.pools; ++p) {
      std::vector<double> pooled;
      for (std::int64_t c = 0; c < z.index_head_dim; ++c) {
        pooled.push_back(pooled_channel(*args, sequence.first_row + p * z.index_kpool, c));
      }
      keep(z, std::move(pooled), sequence.first_pool + p, args->pool_codes, args->pool_scales);
    }
  }
  *args->pool_codes.written = z.pools * z.index_head_dim;
  *args->pool_scales.written = z.pools;
  return INDEXPOOL_OK;
}

int quantize_query(const indexpool_quantize_query_args* args) {
  const indexpool_sizes& z = *args->sizes;
  const std::int64_t rows = z.rows * z.index_n_heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double> query;
    for (std::int64_t c = 0; c < z.index_head_dim; ++c) {
      query.push_back(load(z.storage_dtype, args->queries, row * z.index_head_dim + c));
    }
    keep(z, std::move(query), row, args->query_codes, args->query_scales);
  }
  *args->query_codes.written = rows * z.index_head_dim;
  *args->query_scales.written = rows;
  return INDEXPOOL_OK;
}

int logits(const indexpool_logits_args* args) {
  const indexpool_sizes& z = *args->sizes;
  for (std::int64_t s = 0; s < z.sequence_count; ++s) {
    const indexpool_sequence& sequence = z.sequences[s];
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      const std::int64_t row = sequence.first_row + t;
      for (std::int64_t p = 0; p < (t + 1) / z.index_kpool; ++p) {
        static_cast<float*>(args->logits.data)[row * args->logits_stride + p] =
            static_cast<float>(logit(*args, row, sequence.first_pool + p));
      }
    }
  }
  *args->logits.written = z.rows * args->logits_stride;
  return INDEXPOOL_OK;
}

int topk(const indexpool_topk_args* args) {
  const indexpool_sizes& z = *args->sizes;
  for (std::int64_t s = 0; s < z.sequence_count; ++s) {
    const indexpool_sequence& sequence = z.sequences[s];
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      const std::int64_t row = sequence.first_row + t;
      select(*args, t, sequence.first_key, args->logits + row * args->logits_stride,
             static_cast<std::int32_t*>(args->selection.data) + row * z.selection_width);
    }
  }
  *args->selection.written = z.rows * z.selection_width;
  return INDEXPOOL_OK;
}

int pipeline(const indexpool_pipeline_args* args) {
  const indexpool_sizes& z = *args->sizes;
  const bool scaled = z.scale_rule != INDEXPOOL_SCALE_NONE;
  const indexpool_pool_args pooling{&z,        args->keys,       args->gate_scores,
                                    args->ape, args->pool_codes, args->pool_scales};
  pool(&pooling);
  if (scaled) {
    const indexpool_quantize_query_args quantising{&z, args->queries, args->query_codes,
                                                   args->query_scales};
    quantize_query(&quantising);
  }
  const indexpool_logits_args scoring{&z,
                                      scaled ? args->query_codes.data : args->queries,
                                      static_cast<const float*>(args->query_scales.data),
                                      args->head_weights,
                                      args->logit_scale,
                                      args->pool_codes.data,
                                      static_cast<const float*>(args->pool_scales.data),
                                      args->logits_stride,
                                      args->logits};
  logits(&scoring);
  const indexpool_topk_args selecting{&z, static_cast<const float*>(args->logits.data),
                                      args->logits_stride, args->selection};
  return topk(&selecting);
}

}  // namespace naive
