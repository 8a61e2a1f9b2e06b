#include "indexpool/model/step/planner.hpp"

#include <algorithm>

#include "indexpool/model/error.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {

ParameterTensor Tensors::take(const std::string& name) {
  const auto at = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const ParameterTensor& each) { return each.name == name; });
  if (at == tensors_.end()) throw InternalError("no tensor " + name + " in a layer's list");
  ParameterTensor tensor = *at;
  tensors_.erase(at);
  return tensor;
}

bool Tensors::has(const std::string& name) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const ParameterTensor& each) { return each.name == name; });
}

Bytes Tensors::bytes(const ParameterTensor& tensor) const {
  return parameter_bytes(architecture_, tensor, ranks_);
}

Bytes Tensors::take_bytes(std::initializer_list<const char*> names) {
  Bytes sum;
  for (const char* name : names) {
    if (has(name)) sum += bytes(take(name));
  }
  return sum;
}

std::int64_t Tensors::rows(const ParameterTensor& tensor) const {
  std::int64_t rows = tensor.rows;
  if (tensor.sharding == Sharding::rows) rows /= ranks_;
  if (tensor.sharding == Sharding::kv_heads) {
    rows =
        tensor.head_rows * std::max<std::int64_t>(1, divided_up(rows / tensor.head_rows, ranks_));
  }
  return checked_product(rows, tensor.count, "features of a projection");
}

std::int64_t Tensors::columns(const ParameterTensor& tensor) const {
  return tensor.sharding == Sharding::columns ? tensor.columns / ranks_ : tensor.columns;
}

MatrixProduct Tensors::product(const ParameterTensor& tensor) const {
  return {rows(tensor), columns(tensor), 1, tensor.format, bytes(tensor)};
}

void Tensors::require_empty() const {
  if (tensors_.empty()) return;
  throw InternalError("no operation of a step uses " + tensors_.front().name);
}

void Planner::add(std::string name, Shape shape, std::string source) {
  plan.operations.push_back({group, std::move(name), std::move(shape), count, section, lane,
                             of_sequences, std::move(source)});
}

void Planner::all_reduce(std::int64_t elements) {
  if (ranks() == 1) return;
  const std::string before = std::exchange(group, "collectives");
  add("all-reduce after " + before,
      Collective{CollectiveKind::all_reduce, ranks(), elements * bf16_bytes});
  group = before;
}

void Planner::begin_section() { section = ++plan.sections; }

void Planner::side(std::string side_group) {
  lane = Lane::side;
  group = std::move(side_group);
}

void Planner::end_section(std::string main_group) {
  section = 0;
  lane = Lane::main;
  group = std::move(main_group);
}

std::int64_t heads_here(const Planner& p) {
  return std::max<std::int64_t>(1, p.a.num_attention_heads / p.ranks());
}

Stream norm_and_store(std::int64_t elements, std::int64_t stored_bytes, Bytes parameters) {
  return {
      elements * bf16_bytes, elements * bf16_bytes + stored_bytes, parameters, 0, 8 * elements, 2};
}

}  // namespace indexpool::step
