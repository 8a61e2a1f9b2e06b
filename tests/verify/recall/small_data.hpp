// Data sets small enough to compare in a few milliseconds.
#pragma once

#include "indexpool/verify/random.hpp"
#include "indexpool/verify/recall/compare.hpp"

namespace indexpool::verify::recall {

inline reference::training::Sequence random_sequence(const reference::training::Geometry& g,
                                                     std::uint64_t seed, std::uint64_t stream) {
  const Random random(seed, stream);
  std::int64_t next = 0;
  const auto normals = [&](std::int64_t n) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(random.normal(next++));
    return values;
  };
  reference::training::Sequence sequence;
  sequence.keys = normals(g.tokens * g.head_dim);
  sequence.features = normals(g.tokens * g.features);
  sequence.queries = normals(g.queries * g.heads * g.head_dim);
  for (std::int64_t i = 0; i < g.queries * g.heads; ++i)
    sequence.head_weights.push_back(0.5 + random.uniform(next++));
  for (std::int64_t t = 0; t < g.tokens; ++t) {
    sequence.ages.push_back(static_cast<double>(random.integer(next++, 0, 30)));
    sequence.access_terms.push_back(random.uniform(next++));
  }
  return sequence;
}

// 32 tokens of 6 channels, two heads, four queries; two sequences learnt from, three held out.
inline DataSet small_data(std::uint64_t seed) {
  DataSet data;
  data.name = "small";
  data.geometry = {32, 5, 6, 2, 4, 1};
  data.k = 8;
  data.queries_per_unit = 4;
  data.unit = "sequences";
  for (std::uint64_t stream = 0; stream < 2; ++stream)
    data.learnt_from.push_back(random_sequence(data.geometry, seed, stream));
  for (std::uint64_t stream = 2; stream < 5; ++stream)
    data.held_out.push_back(random_sequence(data.geometry, seed, stream));
  return data;
}

inline const Row& row_of(const std::vector<Row>& rows, std::string_view policy, Form form,
                         std::int64_t ratio = 4) {
  for (const Row& row : rows)
    if (row.policy == policy && row.form == form && row.ratio == ratio) return row;
  throw std::out_of_range("no row of " + std::string(policy));
}

}  // namespace indexpool::verify::recall
