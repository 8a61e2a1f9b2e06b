#include "indexpool/model/attention_layer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

const std::vector<AttentionLayer>& attention_layers() {
  static const std::vector<AttentionLayer> rows = {
      {"hybrid", "B",
       "safe gate, linear attention by token and in chunks, attention over selected pools, and the "
       "gate that mixes both",
       4, 128, 4, 16, true},
      {"composite", "A",
       "causal softmax of decompressed composite vectors over the original values", 8, 64, 4, 4},
      {"feedback", "D",
       "attention mass to access counts, and the tf-idf weights of the next step from them", 1, 128,
       4, 4},
  };
  return rows;
}

std::vector<std::string> attention_layer_names() {
  std::vector<std::string> names;
  for (const AttentionLayer& layer : attention_layers()) names.emplace_back(layer.name);
  return names;
}

const AttentionLayer& find_attention_layer(std::string_view name) {
  for (const AttentionLayer& layer : attention_layers()) {
    if (layer.name == name) return layer;
  }
  const std::vector<std::string> names = attention_layer_names();
  throw ConfigError(fmt::format("unknown attention \"{}\"{} (known: {})", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

std::vector<std::string> attention_mode_names() {
  std::vector<std::string> names;
  for (const NumericMode& mode : pooling_modes()) {
    if (!mode.quantised()) names.push_back(mode.name);
  }
  return names;
}

const NumericMode& attention_mode(std::string_view name) {
  const std::vector<std::string> names = attention_mode_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return pooling_mode(name);
  throw ConfigError(fmt::format("unknown numeric mode \"{}\"{} (known for attention: {})", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace indexpool
