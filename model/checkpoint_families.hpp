// The families of published configs, one function each. Internal to the layer.
#pragma once

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/checkpoint_reader.hpp"

namespace indexpool {

// Each fills `architecture` from the text model's object.
void read_glm5_next(const ConfigReader& config, Architecture& architecture);
void read_glm_moe_dsa(const ConfigReader& config, Architecture& architecture);
void read_deepseek_v32(const ConfigReader& config, Architecture& architecture);
void read_deepseek_v4(const ConfigReader& config, Architecture& architecture);
void read_qwen4(const ConfigReader& config, Architecture& architecture);
void read_minimax_m3(const ConfigReader& config, Architecture& architecture);

// What every family spells alike: sizes of the embedding, heads, layers and context.
void read_common(const ConfigReader& config, Architecture& architecture);
// The last check of a family: index_topk tokens fit the context, and so on.
void check_indexer(const ConfigReader& config, const Architecture& architecture);

}  // namespace indexpool
