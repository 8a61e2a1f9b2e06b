// Sequences of a batch, alone and cut.
#include <cstring>

#include "indexpool/verify/attention/attention.hpp"

namespace indexpool::verify::attention {
namespace {

// Pieces [begin, end) of a tensor's first axis, one after the other.
struct Piece {
  std::int64_t begin = 0, end = 0;
};
Tensor rows_of(const Tensor& whole, const std::vector<Piece>& pieces) {
  Shape shape = whole.shape();
  const std::int64_t row = shape[0] > 0 ? whole.bytes().value / shape[0] : 0;
  shape[0] = 0;
  for (const Piece& piece : pieces) shape[0] += piece.end - piece.begin;
  Tensor part(whole.dtype(), shape);
  std::int64_t at = 0;
  for (const Piece& piece : pieces) {
    const std::int64_t bytes = (piece.end - piece.begin) * row;
    if (bytes > 0)
      std::memcpy(part.data() + at, whole.data() + piece.begin * row,
                  static_cast<std::size_t>(bytes));
    at += bytes;
  }
  return part;
}

LinearAttentionInputs rows_of(const LinearAttentionInputs& whole,
                              const std::vector<Piece>& pieces) {
  LinearAttentionInputs part = whole;
  for (Tensor LinearAttentionInputs::*member :
       {&LinearAttentionInputs::queries, &LinearAttentionInputs::keys,
        &LinearAttentionInputs::values, &LinearAttentionInputs::log_decay,
        &LinearAttentionInputs::beta})
    part.*member = rows_of(whole.*member, pieces);
  return part;
}

}  // namespace

LinearAttentionInputs sequence_of(const LinearBatch& batch, std::size_t sequence) {
  std::int64_t first = 0;
  for (std::size_t s = 0; s < sequence; ++s) first += batch.lengths[s];
  LinearAttentionInputs one = rows_of(batch.rows, {{first, first + batch.lengths[sequence]}});
  const auto s = static_cast<std::int64_t>(sequence);
  const Tensor state = rows_of(batch.states, {{s, s + 1}});
  one.state = Tensor(DType::f32, batch.rows.state.shape());
  std::memcpy(one.state.data(), state.data(), static_cast<std::size_t>(state.bytes().value));
  return one;
}

LinearBatch cut(const LinearBatch& batch, const std::vector<std::int64_t>& begin,
                const std::vector<std::int64_t>& end) {
  LinearBatch part = batch;
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (std::size_t s = 0; s < batch.lengths.size(); ++s) {
    pieces.push_back({first + begin[s], first + end[s]});
    part.lengths[s] = end[s] - begin[s];
    first += batch.lengths[s];
  }
  part.rows = rows_of(batch.rows, pieces);
  part.states = batch.states.clone();
  return part;
}

}  // namespace indexpool::verify::attention
