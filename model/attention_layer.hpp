// The layers around the pooling that are problems of their own, one row each: which operations they
// chain, and what of a problem they read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool {

struct AttentionLayer {
  std::string_view name;
  std::string_view published;  // article "A" to "E"
  std::string_view formula;
  std::int64_t heads = 1, head_dim = 128, index_kpool = 4;  // as published
  std::int64_t index_topk = 4;
  bool selects = false;  // reads index_topk and index_kpool: attention over selected pools
};
const std::vector<AttentionLayer>& attention_layers();
const AttentionLayer& find_attention_layer(std::string_view name);  // ConfigError with near names
std::vector<std::string> attention_layer_names();

// Storage of the operands: f32, f16 or bf16; everything in between is f32.
std::vector<std::string> attention_mode_names();
const NumericMode& attention_mode(std::string_view name);  // ConfigError with near names

inline constexpr std::int64_t attention_head_dims[] = {32, 64, 128};
// Positions of a row of selected tokens; a row's scores stay on chip.
inline constexpr std::int64_t most_attention_selection = 8192;

}  // namespace indexpool
