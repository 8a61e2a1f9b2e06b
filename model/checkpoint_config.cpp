#include "indexpool/model/checkpoint_config.hpp"

#include <fmt/format.h>

#include "indexpool/model/checkpoint_families.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

struct Family {
  const char* model_type;
  const char* text_model_type;  // where the text model is nested in "text_config"
  void (*read)(const ConfigReader& config, Architecture& architecture);
};
constexpr Family families[] = {
    {"glm5_next", "glm5_next_text", read_glm5_next},
    {"glm_moe_dsa", "glm_moe_dsa", read_glm_moe_dsa},
    {"deepseek_v32", "deepseek_v32", read_deepseek_v32},
    {"deepseek_v4", "deepseek_v4", read_deepseek_v4},
    {"qwen4_exp", "qwen4_exp_text", read_qwen4},
    {"minimax_m3_vl", "minimax_m3_text", read_minimax_m3},
    {"minimax_m3", "minimax_m3", read_minimax_m3},
};

const Family& family_of(const ConfigReader& root) {
  const JsonValue value = root.at("model_type");
  const std::string name = value.text();
  std::vector<std::string> known;
  for (const Family& family : families) {
    if (name == family.model_type || name == family.text_model_type) return family;
    known.emplace_back(family.model_type);
  }
  value.fail(fmt::format("unknown model_type \"{}\"{} (known: {})", name, did_you_mean(name, known),
                         fmt::join(known, ", ")));
}

// FP8 checkpoints carry a scale for each block of 128 x 128. Other quantisations are not known.
void read_quantization(const ConfigReader& config, Architecture& architecture) {
  const std::optional<JsonValue> object = config.find("quantization_config");
  if (!object) return;
  const ConfigReader quantization(*object);
  const JsonValue method = quantization.at("quant_method");
  if (method.text() != "fp8") {
    method.fail(
        fmt::format("found \"{}\", expected \"fp8\" or no quantization_config: how other "
                    "methods lay out their parameters is not known here",
                    method.text()));
  }
  if (const std::optional<JsonValue> block = quantization.find("weight_block_size")) {
    const std::vector<JsonValue> sides = block->array();
    if (sides.size() != 2 || whole_number(sides[0], 1, largest_width) != 128 ||
        whole_number(sides[1], 1, largest_width) != 128) {
      block->fail("expected [128, 128]");
    }
  }
  architecture.linear_format = architecture.expert_format = ParameterFormat::fp8_block;
}

void read_expert_dtype(const ConfigReader& config, Architecture& architecture) {
  const std::optional<JsonValue> value = config.find("expert_dtype");
  if (!value) return;
  const std::string name = value->text();
  if (name == "fp4") {
    architecture.expert_format = ParameterFormat::fp4_group;
  } else if (name == "bf16" || name == "bfloat16") {
    architecture.expert_format = ParameterFormat::bf16;
  } else if (name != "fp8") {
    value->fail(fmt::format("found \"{}\", expected fp4, fp8 or bf16", name));
  }
}

}  // namespace

void read_common(const ConfigReader& config, Architecture& architecture) {
  architecture.hidden_size = config.size("hidden_size");
  architecture.vocab_size = config.size("vocab_size");
  architecture.num_attention_heads = config.size("num_attention_heads");
  architecture.num_key_value_heads =
      config.size_or("num_key_value_heads", architecture.num_attention_heads);
  architecture.max_position_embeddings = config.size("max_position_embeddings", largest_context);
  architecture.tie_word_embeddings = config.flag_or("tie_word_embeddings", false);
}

void check_indexer(const ConfigReader& config, const Architecture& architecture) {
  validate(architecture.indexer, config.self().where());
  const std::int64_t selected = architecture.indexer.index_topk;
  if (selected > architecture.max_position_embeddings) {
    config.at("max_position_embeddings")
        .fail(fmt::format("found {}, fewer than the {} tokens that the indexer selects; both are "
                          "counted in tokens",
                          architecture.max_position_embeddings, selected));
  }
  if (architecture.num_attention_heads % architecture.num_key_value_heads != 0) {
    config.at("num_key_value_heads")
        .fail(fmt::format("found {}, which does not divide num_attention_heads {}",
                          architecture.num_key_value_heads, architecture.num_attention_heads));
  }
}

Architecture read_checkpoint_config(const JsonValue& root) {
  const ConfigReader outer(root);
  const Family& family = family_of(outer);
  const std::optional<JsonValue> nested = outer.find("text_config");
  const ConfigReader config = nested ? ConfigReader(*nested) : outer;

  Architecture architecture;
  architecture.model_type = family.model_type;
  architecture.name = family.model_type;
  architecture.source = root.where();
  read_quantization(config.find("quantization_config") ? config : outer, architecture);
  read_common(config, architecture);
  family.read(config, architecture);
  read_expert_dtype(config, architecture);
  check_indexer(config, architecture);
  return architecture;
}

}  // namespace indexpool
