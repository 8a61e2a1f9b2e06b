// Ways in which a foreign kernel goes wrong, each done to the answers of a public implementation.
#pragma once

#include <cstring>
#include <ostream>
#include <span>
#include <string>

#include "answers.hpp"

namespace indexpool::verify {

struct Corruption {
  const char* name;
  const char* golden;
  Op op;
  const char* check;  // the one that must see it
  const char* place;  // what its message must name: row, pool
  void (*apply)(Answered& answers);
  ForeignContract contract = {};
};
inline void PrintTo(const Corruption& corruption, std::ostream* out) { *out << corruption.name; }
inline Tensor& output(Answered& answers, const char* name) {
  return answers.outputs.tensors.at(name);
}
// Rows along the first axis.
inline void copy_row(Tensor& tensor, std::int64_t to, std::int64_t from) {
  const std::int64_t bytes = tensor.bytes().value / tensor.dim(0);
  std::memmove(tensor.data() + to * bytes, tensor.data() + from * bytes,
               static_cast<std::size_t>(bytes));
}

inline void exchange_rows(Tensor& tensor, std::int64_t a, std::int64_t b) {
  const Tensor before = tensor.clone();
  const std::int64_t bytes = tensor.bytes().value / tensor.dim(0);
  std::memcpy(tensor.data() + a * bytes, before.data() + b * bytes,
              static_cast<std::size_t>(bytes));
  std::memcpy(tensor.data() + b * bytes, before.data() + a * bytes,
              static_cast<std::size_t>(bytes));
}

std::span<const Corruption> pool_corruptions();
std::span<const Corruption> query_and_logit_corruptions();
std::span<const Corruption> selection_corruptions();

}  // namespace indexpool::verify
