#include "indexpool/verify/stored.hpp"

#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/stages.hpp"

namespace indexpool::verify {
namespace {

// Calls visit(pool of all sequences, sequence, pool of the sequence).
template <class Visit>
void for_each_pool(const IndexerInputs& inputs, const Visit& visit) {
  std::int64_t pool = 0;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const std::int64_t pools = inputs.sequences[s].length / inputs.config.index_kpool;
    for (std::int64_t p = 0; p < pools; ++p) visit(pool++, static_cast<std::int64_t>(s), p);
  }
}

}  // namespace

StoredPools read_stored(const IndexerInputs& inputs, const CacheLayout& layout,
                        const std::vector<std::byte>& cache) {
  StoredPools stored;
  stored.head_dim = layout.head_dim;
  for_each_pool(inputs, [&](std::int64_t, std::int64_t sequence, std::int64_t pool) {
    const std::byte* codes = cache.data() + layout.code_offset(sequence, pool);
    for (std::int64_t c = 0; c < layout.head_dim; ++c) {
      stored.codes.push_back(load_element(layout.cache, codes, c));
    }
    std::vector<std::byte> raw(codes, codes + layout.code_bytes());
    double scale = 1;
    if (layout.scales) {
      const std::byte* at = cache.data() + layout.scale_offset(sequence, pool);
      scale = load_element(DType::f32, at, 0);
      raw.insert(raw.end(), at, at + 4);
    }
    stored.scales.push_back(scale);
    stored.raw.push_back(std::move(raw));
    ++stored.pools;
  });
  return stored;
}

std::vector<std::byte> reference_cache(const IndexerInputs& inputs, const CacheLayout& layout,
                                       const reference::Pooled& pooled) {
  std::vector<std::byte> cache(static_cast<std::size_t>(layout.cache_bytes()), poison);
  const auto dim = static_cast<std::size_t>(layout.head_dim);
  for_each_pool(inputs, [&](std::int64_t at, std::int64_t sequence, std::int64_t pool) {
    const auto row =
        std::span(pooled.rotated.value).subspan(static_cast<std::size_t>(at) * dim, dim);
    std::byte* codes = cache.data() + layout.code_offset(sequence, pool);
    if (!layout.scales) {
      for (std::size_t c = 0; c < dim; ++c) {
        store_element(layout.cache, codes, static_cast<std::int64_t>(c), row[c]);
      }
      return;
    }
    const reference::Quantised quantised = reference::quantise(row, inputs.mode);
    for (std::size_t c = 0; c < dim; ++c) {
      store_element(layout.cache, codes, static_cast<std::int64_t>(c), quantised.codes[c]);
    }
    store_element(DType::f32, cache.data() + layout.scale_offset(sequence, pool), 0,
                  quantised.scale);
  });
  return cache;
}

StoredQueries reference_queries(const IndexerInputs& inputs) {
  StoredQueries stored;
  if (!inputs.mode.quantised()) {
    const auto raw = inputs.queries.raw();
    stored.codes.assign(raw.begin(), raw.end());
    return stored;
  }
  const reference::Bounded rotated = reference::rotate_queries(inputs);
  const auto dim = static_cast<std::size_t>(inputs.config.index_head_dim);
  stored.codes.resize(rotated.value.size());
  for (std::size_t first = 0; first < rotated.value.size(); first += dim) {
    const reference::Quantised quantised =
        reference::quantise(std::span(rotated.value).subspan(first, dim), inputs.mode);
    for (std::size_t c = 0; c < dim; ++c) {
      store_element(inputs.mode.cache, stored.codes.data(), static_cast<std::int64_t>(first + c),
                    quantised.codes[c]);
    }
    stored.scales.push_back(static_cast<float>(quantised.scale));
  }
  return stored;
}

std::vector<double> decode(DType dtype, const std::vector<std::byte>& bytes) {
  const auto count =
      static_cast<std::int64_t>(bytes.size()) / static_cast<std::int64_t>(info(dtype).bytes);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = load_element(dtype, bytes.data(), i);
  }
  return values;
}

std::string pool_name(const IndexerInputs& inputs, std::int64_t pool) {
  const std::vector<std::int64_t> first = first_pools(inputs);
  std::size_t sequence = 0;
  while (sequence + 2 < first.size() && first[sequence + 1] <= pool) ++sequence;
  return fmt::format("sequence {}, pool {}", sequence, pool - first[sequence]);
}

}  // namespace indexpool::verify
