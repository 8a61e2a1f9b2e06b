// Operations while a plan is gathered. Internal to the layer.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "indexpool/model/memory/parameters.hpp"
#include "indexpool/model/step/plan.hpp"

namespace indexpool::step {

// The tensors of a layer, each to be used by one operation.
class Tensors {
 public:
  Tensors(const Architecture& architecture, std::vector<ParameterTensor> tensors,
          std::int64_t ranks)
      : architecture_(architecture), tensors_(std::move(tensors)), ranks_(ranks) {}

  // InternalError when there is no tensor of that name (first of its kind: indexers repeat names).
  ParameterTensor take(const std::string& name);
  bool has(const std::string& name) const;
  // Of a rank, scales included.
  Bytes bytes(const ParameterTensor& tensor) const;
  Bytes take_bytes(std::initializer_list<const char*> names);  // of those there are
  // Output and input features of a rank, all `count` matrices side by side.
  std::int64_t rows(const ParameterTensor& tensor) const;
  std::int64_t columns(const ParameterTensor& tensor) const;
  // The product with a tensor's matrices side by side.
  MatrixProduct product(const ParameterTensor& tensor) const;
  // InternalError naming a tensor that no operation used.
  void require_empty() const;

 private:
  const Architecture& architecture_;
  std::vector<ParameterTensor> tensors_;
  std::int64_t ranks_;
};

struct Planner {
  Planner(const Architecture& architecture, const Serving& served)
      : a(architecture), serving(served) {}

  const Architecture& a;
  const Serving& serving;
  Plan plan;
  // Of the operations that are added next.
  std::string group;
  std::int64_t count = 1;
  int section = 0;
  Lane lane = Lane::main;
  bool of_sequences = false;

  std::int64_t ranks() const { return serving.request.tensor_parallel; }
  KvFormat kv() const { return serving.request.kv.value_or(a.kv_format); }
  void add(std::string name, Shape shape, std::string source = "");
  void all_reduce(std::int64_t elements);  // over the tensor-parallel ranks, bf16
  // The next operations run beside each other, those of the side lane from `side` on.
  void begin_section();
  void side(std::string side_group);
  void end_section(std::string main_group);
};

std::int64_t heads_here(const Planner& planner);  // query heads of a rank
// Norm, rotation, and the store into the cache: two launches over a row's elements.
Stream norm_and_store(std::int64_t elements, std::int64_t stored_bytes, Bytes parameters);

void plan_attention(Planner& planner, Tensors& tensors, const LayerSpec& layer);
void plan_latent(Planner& planner, Tensors& tensors, const LayerSpec& layer);
void plan_linear(Planner& planner, Tensors& tensors, const LayerSpec& layer);
// `routed` are the tensors of routed experts, none for a dense part.
void plan_feed_forward(Planner& planner, Tensors& tensors, Tensors& routed, MlpKind kind);
// Attention of `attention`'s heads and widths over the cache of `layer`.
void plan_cache(Planner& planner, const LayerSpec& layer, Attention attention);
// The kernels that the caller declares, and what ranks that share a context exchange for them.
void plan_indexer_kernels(Planner& planner);
void plan_residual(Planner& planner);
void plan_embedding(Planner& planner);
void plan_head(Planner& planner);
void plan_stages(Planner& planner);

}  // namespace indexpool::step
