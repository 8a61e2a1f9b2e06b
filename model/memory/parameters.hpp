// The parameters of a model, tensor by tensor, as its checkpoint stores them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool {

// What tensor parallelism does to a tensor.
enum class Sharding {
  replicated,
  rows,     // output features are split ("column parallel")
  columns,  // input features are split ("row parallel")
  kv_heads  // rows, in whole key-value heads; with more ranks than heads they are repeated
};

// `count` tensors of one shape. rows x columns elements each.
struct ParameterTensor {
  std::string group;  // "attention", "indexer", "routed experts", ...
  std::string name;   // as in the checkpoint
  std::int64_t rows = 1, columns = 1, count = 1;
  ParameterFormat format = ParameterFormat::bf16;
  Sharding sharding = Sharding::replicated;
  std::int64_t head_rows = 0;  // rows of one head, for kv_heads

  std::int64_t elements() const;  // ConfigError beyond 63 bits
};

std::vector<ParameterTensor> layer_parameters(const Architecture& architecture,
                                              const LayerSpec& layer);
// What a drafting layer has besides the layer itself.
std::vector<ParameterTensor> draft_parameters(const Architecture& architecture);
std::vector<ParameterTensor> embedding_parameters(const Architecture& architecture);  // first stage
std::vector<ParameterTensor> head_parameters(const Architecture& architecture);       // last stage

// Bytes with the scales that belong to the format; of one of `ranks` ranks (its largest share), and
// of the whole. Throws ConfigError where ranks do not divide what they split.
Bytes parameter_bytes(const Architecture& architecture, const ParameterTensor& tensor,
                      std::int64_t ranks = 1);

// All layers, embedding and head, without drafting layers: elements, scales not counted.
std::int64_t parameter_count(const Architecture& architecture);

}  // namespace indexpool
