// Activations of a language model as sequences.
#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/recall/data.hpp"
#include "indexpool/verify/recall/kept.hpp"

namespace indexpool::verify::recall {
namespace {

using namespace reference::training;
using reference::training::Sequence;

// Of activations.py.
constexpr std::int64_t stored_tokens = 2048, positions = 128, query_heads = 3, head_dim = 64,
                       hidden = 576;
constexpr std::int64_t seen_tokens = 1024;  // before every query
constexpr std::int64_t block = 16;          // positions: 128 tokens of text

std::vector<double> first_rows(const Tensor& tensor, std::int64_t rows) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows * tensor.size() / tensor.dim(0); ++i)
    values.push_back(tensor.at(i));
  return values;
}

// Blocks of an even number to the first, of an odd number to the second.
void deal_queries(const Tensor& queries, Sequence& even, Sequence& odd) {
  for (std::int64_t position = 0; position < positions; ++position) {
    Sequence& to = position / block % 2 == 0 ? even : odd;
    for (std::int64_t i = 0; i < query_heads * head_dim; ++i)
      to.queries.push_back(queries.at(position * query_heads * head_dim + i));
  }
}

void count_accesses(DataSet& data) {
  data.accesses.assign(static_cast<std::size_t>(data.geometry.tokens), 0);
  for (const auto& best : unpooled(data, data.learnt_from[0], data.k).best)
    for (const std::int64_t token : best) ++data.accesses[static_cast<std::size_t>(token)];
}

}  // namespace

const std::vector<std::string>& layers() {
  static const std::vector<std::string> names = {"layer6", "layer14", "layer22"};
  return names;
}

DataSet activations(const TensorFile& file, const std::string& layer) {
  const Tensor& keys = file.require(layer + ".keys", DType::f16, {stored_tokens, head_dim});
  const Tensor& queries =
      file.require(layer + ".queries", DType::f16, {positions, query_heads, head_dim});
  const bool states = file.contains(layer + ".hidden_states");
  const Tensor& features =
      states ? file.require(layer + ".hidden_states", DType::f16, {stored_tokens, hidden}) : keys;
  DataSet data;
  data.name = layer;
  data.about = fmt::format(
      "keys and queries of SmolLM2-135M-Instruct, layer {}, on the text of the GPL; gates see the "
      "{}",
      layer.substr(5), states ? "hidden states" : "keys");
  data.k = 64;
  data.relu = false;
  data.queries_per_unit = query_heads;
  data.unit = "query positions, 8 tokens apart in one text";
  data.geometry = {seen_tokens, features.dim(1), head_dim, 1, positions / 2 * query_heads, 1};
  Sequence even;
  even.keys = first_rows(keys, seen_tokens);
  even.features = first_rows(features, seen_tokens);
  even.head_weights.assign(static_cast<std::size_t>(data.geometry.queries), 1);
  even.access_terms.assign(static_cast<std::size_t>(seen_tokens), 0);
  // No statistics of use: a token's age is the time since it was written.
  for (std::int64_t t = 0; t < seen_tokens; ++t)
    even.ages.push_back(static_cast<double>(seen_tokens - 1 - t));
  Sequence odd = even;
  deal_queries(queries, even, odd);
  data.learnt_from = {std::move(even)};
  data.held_out = {std::move(odd)};
  count_accesses(data);
  return data;
}

}  // namespace indexpool::verify::recall
