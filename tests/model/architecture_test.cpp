#include "indexpool/model/architecture.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

std::string built_in(std::string_view name) {
  for (const DataFile& file : embedded_architectures()) {
    if (file.name == name) return std::string(file.text);
  }
  ADD_FAILURE() << name << " is not built in";
  return "";
}

std::string edited(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the file: " << from;
  return text.replace(at, from.size(), to);
}

// The error of `name`'s file with one text replaced; it names the file.
std::string error_with(std::string_view name, std::string_view from, std::string_view to) {
  const TemporaryFolder folder;
  const std::string path = folder / "edited.json";
  write_bytes(path, edited(built_in(name), from, to));
  const std::string error = config_error_of([&] { load_model(path); });
  expect_parts(error, {path});
  return error;
}

std::int64_t layers_of(const Architecture& model, AttentionKind kind) {
  return std::count_if(model.layers.begin(), model.layers.end(),
                       [&](const LayerSpec& layer) { return layer.attention == kind; });
}

TEST(Architecture, Glm53FlashIsTheCheckpoints) {
  const ArchitectureConfig glm = load_architecture("glm-5.3-flash");
  EXPECT_EQ(glm.name, "glm-5.3-flash");
  EXPECT_EQ(glm.indexer, (IndexerConfig{32, 128, 2048, 4, true}));
  EXPECT_EQ(glm.indexer.topk_pools(), 512);
  EXPECT_EQ(glm.indexer.selection_width(), 2051);
  EXPECT_EQ(glm.layers, 45);
  EXPECT_EQ(glm.indexer_layers, 11);
  EXPECT_EQ(glm.hidden_size, 4096);
  EXPECT_EQ(glm.q_lora_rank, 1536);
  EXPECT_EQ(glm.kv_lora_rank, 512);
  EXPECT_EQ(glm.max_position_embeddings, 1048576);
  EXPECT_EQ(glm.numeric_mode, "vllm_fp8");
  EXPECT_EQ(glm.states_per_page, 64);
}

TEST(Architecture, EveryBuiltInFileIsNamedAsItsFileAndLoads) {
  for (const std::string& name : architecture_names()) {
    EXPECT_EQ(load_architecture(name).name, name);
    EXPECT_GT(load_architecture(name).indexer_layers, 0) << name;
  }
  EXPECT_EQ(architecture_names().size(), 13u);
}

TEST(Architecture, LayersAreThoseOfThePublishedModels) {
  using enum AttentionKind;
  const Architecture glm53 = load_model("glm-5.3-flash");
  EXPECT_EQ(layers_of(glm53, latent), 11);
  EXPECT_EQ(layers_of(glm53, kda), 34);
  EXPECT_EQ(glm53.layers[44].attention, kda);
  EXPECT_EQ(load_model("glm-5").indexer_layers(), 78);
  EXPECT_EQ(load_model("deepseek-v3.2").indexer_layers(), 61);
  const Architecture flash = load_model("deepseek-v4-flash");
  EXPECT_EQ(layers_of(flash, window), 2);
  EXPECT_EQ(layers_of(flash, compressed), 41);
  EXPECT_EQ(flash.indexer_layers(), 21);
  EXPECT_EQ(load_model("deepseek-v4-pro").indexer_layers(), 30);
  const Architecture qwen = load_model("qwen4-exp");
  EXPECT_EQ(layers_of(qwen, grouped_query), 12);
  EXPECT_EQ(layers_of(qwen, gated_delta), 36);
  EXPECT_EQ(load_model("minimax-m3").indexer_layers(), 57);
}

TEST(Architecture, Glm52SharesItsIndexersAsIndexShareSays) {
  const Architecture glm = load_model("glm-5.2");
  EXPECT_EQ(glm.indexer_layers(), 21);
  std::vector<std::size_t> full;
  for (std::size_t i = 0; i < glm.layers.size(); ++i) {
    if (glm.layers[i].indexer) full.push_back(i);
  }
  EXPECT_EQ(std::vector<std::size_t>(full.begin(), full.begin() + 5),
            (std::vector<std::size_t>{0, 1, 2, 6, 10}));
  EXPECT_EQ(full.back(), 74u);
  // Without the list, the rule gives the same.
  const TemporaryFolder folder;
  write_bytes(folder / "rule.json",
              edited(built_in("glm-5.2"), "\"indexer_types\"", "\"not_indexer_types\""));
  EXPECT_EQ(load_model(folder / "rule.json").layers, glm.layers);
}

// A config.json as published: no wrapper, keys we know nothing of, null values.
constexpr const char* published_glm = R"({
  "architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "dtype": "bfloat16", "eos_token_id": [154820, 154827, 154829], "ep_size": 1,
  "first_k_dense_replace": 3, "hidden_act": "silu", "head_dim": 64, "hidden_size": 6144,
  "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "indexer_rope_interleave": true,
  "initializer_range": 0.02, "intermediate_size": 12288, "kv_lora_rank": 512,
  "max_position_embeddings": 202752, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
  "model_type": "glm_moe_dsa", "n_group": 1, "n_routed_experts": 256, "n_shared_experts": 1,
  "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8,
  "num_hidden_layers": 78, "num_key_value_heads": 64, "num_nextn_predict_layers": 1,
  "pad_token_id": 154820, "pretraining_tp": 1, "q_lora_rank": 2048, "qk_head_dim": 256,
  "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05,
  "rope_interleave": true, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
  "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
  "topk_group": 1, "topk_method": "noaux_tc", "transformers_version": "5.0.2.dev0",
  "use_cache": true, "v_head_dim": 256, "vocab_size": 154880, "quantization_config": null
})";

std::string write_published(const TemporaryFolder& folder, const std::string& text) {
  write_bytes(folder / "config.json", text);
  return folder / "config.json";
}

TEST(CheckpointConfig, IsReadAsPublished) {
  const TemporaryFolder folder;
  const Architecture read = load_model(write_published(folder, published_glm));
  const Architecture built = load_model("glm-5");
  EXPECT_EQ(read.layers, built.layers);
  EXPECT_EQ(read.draft_layers, built.draft_layers);
  EXPECT_EQ(read.indexer, built.indexer);
  EXPECT_EQ(read.hidden_size, built.hidden_size);
  EXPECT_EQ(read.model_type, "glm_moe_dsa");
  EXPECT_EQ(read.linear_format, ParameterFormat::bf16);
}

std::string published_error(std::string_view from, std::string_view to) {
  const TemporaryFolder folder;
  const std::string path = write_published(folder, edited(published_glm, from, to));
  const std::string error = config_error_of([&] { load_model(path); });
  expect_parts(error, {"config.json"});
  return error;
}

TEST(CheckpointConfig, UnitsDoNotBelongInSizes) {
  expect_parts(published_error("\"kv_lora_rank\": 512", "\"kv_lora_rank\": \"1 KB\""),
               {"/kv_lora_rank", "\"1 KB\"", "without a unit"});
  // 198 "K" tokens beside 2048 tokens.
  expect_parts(
      published_error("\"max_position_embeddings\": 202752", "\"max_position_embeddings\": 198"),
      {"/max_position_embeddings", "198", "2048", "counted in tokens"});
  expect_parts(published_error("\"index_topk\": 2048", "\"index_topk\": 2.048"), {"/index_topk"});
  expect_parts(published_error("\"qk_head_dim\": 256", "\"qk_head_dim\": 512"),
               {"/qk_head_dim", "256"});
}

TEST(CheckpointConfig, NegativeAndAbsurdSizesAreRefusedWithTheirPointer) {
  expect_parts(published_error("\"hidden_size\": 6144", "\"hidden_size\": -6144"),
               {"/hidden_size", "-6144"});
  expect_parts(published_error("\"hidden_size\": 6144", "\"hidden_size\": 61440000000"),
               {"/hidden_size", "16777216"});
  expect_parts(published_error("\"num_hidden_layers\": 78", "\"num_hidden_layers\": 780000000"),
               {"/num_hidden_layers"});
  expect_parts(published_error("\"max_position_embeddings\": 202752",
                               "\"max_position_embeddings\": 1099511627777"),
               {"/max_position_embeddings", "1099511627776"});
  expect_parts(published_error("\"index_topk\": 2048", "\"index_topk\": 1e30"), {"/index_topk"});
}

TEST(CheckpointConfig, UnknownKindsOfLayersAreNamed) {
  expect_parts(error_with("glm-5.3-flash", "\"linear_attention\"", "\"mamba\""),
               {"/config/text_config/layer_types/0", "unknown layer type \"mamba\""});
  expect_parts(error_with("qwen4-exp", "\"full_attention\"", "\"sliding\""),
               {"/config/text_config/layer_types/3", "sliding"});
  expect_parts(error_with("deepseek-v4-flash", "0, 0, 4, 128", "0, 0, 4, 64"),
               {"/config/compress_ratios/3", "unknown compress ratio 64"});
  expect_parts(error_with("glm-5.2", "\"shared\"", "\"half\""),
               {"/config/indexer_types/3", "unknown indexer type \"half\""});
  expect_parts(error_with("glm-5.3-flash", "\"dense\"", "\"wide\""),
               {"/config/text_config/mlp_layer_types/0", "wide"});
  expect_parts(published_error("\"glm_moe_dsa\"", "\"glm_moe_dsb\""),
               {"/model_type", "did you mean \"glm_moe_dsa\"", "deepseek_v32"});
}

TEST(CheckpointConfig, ListsAndCountsMustAgree) {
  expect_parts(
      error_with("glm-5.3-flash", "\"num_hidden_layers\": 45", "\"num_hidden_layers\": 44"),
      {"/layer_types", "45 entries", "44"});
  expect_parts(
      error_with("deepseek-v4-pro", "\"num_hidden_layers\": 61", "\"num_hidden_layers\": 60"),
      {"/compress_ratios", "62 entries"});
  expect_parts(error_with("glm-5.3-flash", "\"kda_layers\": [\n      0, 1, 2, 4",
                          "\"kda_layers\": [\n      0, 1, 3, 4"),
               {"/kda_layers", "layer 2"});
  expect_parts(published_error("\"num_key_value_heads\": 64", "\"num_key_value_heads\": 48"),
               {"/num_key_value_heads", "does not divide"});
}

TEST(CheckpointConfig, MissingKeysAndUnknownQuantisationAreNamed) {
  expect_parts(published_error("\"kv_lora_rank\"", "\"kv_lora_rnk\""),
               {"\"kv_lora_rank\" is missing", "did you mean \"kv_lora_rnk\""});
  expect_parts(published_error("\"quantization_config\": null",
                               "\"quantization_config\": {\"quant_method\": \"gptq\"}"),
               {"/quantization_config/quant_method", "gptq"});
  expect_parts(published_error("\"model_type\": \"glm_moe_dsa\",", ""), {"unknown key"});
}

TEST(Architecture, KpoolThatDoesNotDivideTopkIsRefused) {
  expect_parts(error_with("glm-5.3-flash", "\"index_kpool\": 4", "\"index_kpool\": 3"),
               {"/config/text_config/index_kpool", "does not divide index_topk 2048"});
}

TEST(Architecture, NegativeSizesAndOverflowAreRefused) {
  expect_parts(error_with("glm-5.3-flash", "\"index_n_heads\": 32", "\"index_n_heads\": -32"),
               {"/index_n_heads"});
  expect_parts(error_with("glm-5.3-flash", "\"index_topk\": 2048", "\"index_topk\": 0"),
               {"/index_topk"});
  expect_parts(error_with("glm-5.3-flash", "\"index_head_dim\": 128",
                          "\"index_head_dim\": 4611686018427387904"),
               {"/index_head_dim"});
}

TEST(Architecture, OurOwnKeysAreStrict) {
  expect_parts(error_with("glm-5.3-flash", "\"vllm_fp8\"", "\"vllm_fp9\""), {"/numeric_mode"});
  expect_parts(error_with("glm-5.3-flash", "\"states_per_page\"", "\"states_per_pages\""),
               {"/states_per_pages", "did you mean \"states_per_page\""});
  expect_parts(error_with("indexpool-a-composite", "\"vectors\": 4", "\"vectors\": 0"),
               {"/form/vectors"});
  const TemporaryFolder folder;
  write_bytes(folder / "form.json", edited(built_in("indexpool-a-composite"), "\"config_of\"",
                                           "\"config\": {}, \"config_of\""));
  expect_parts(config_error_of([&] { load_model(folder / "form.json"); }),
               {"form.json", "either \"config\""});
}

TEST(Architecture, UnknownNameListsTheNearOnes) {
  expect_parts(config_error_of([] { load_architecture("glm-5.3-flsh"); }),
               {"did you mean \"glm-5.3-flash\""});
}

TEST(Architecture, StoredKeysAndEntriesHaveTheirPublishedBytes) {
  const Architecture glm = load_model("glm-5.3-flash");
  EXPECT_EQ(index_key_bytes(glm, IndexFormat::fp8), 132);
  EXPECT_EQ(index_key_bytes(glm, IndexFormat::mxfp4), 68);
  EXPECT_EQ(index_key_bytes(glm, IndexFormat::bf16), 256);
  const LayerSpec latent{AttentionKind::latent, MlpKind::moe, true, 0};
  EXPECT_EQ(kv_entry_bytes(glm, latent, KvFormat::bf16), 1024);
  EXPECT_EQ(kv_entry_bytes(glm, latent, KvFormat::fp8), 512);
  EXPECT_EQ(kv_entry_bytes(glm, latent, KvFormat::fp8_scaled), 528);
  EXPECT_EQ(kv_entry_bytes(glm, latent, KvFormat::fp8_ds_mla), 656);
  EXPECT_EQ(kv_entry_bytes(load_model("deepseek-v3.2"), latent, KvFormat::bf16), 1152);
  EXPECT_EQ(kv_entry_bytes(load_model("deepseek-v3.2"), latent, KvFormat::fp8_ds_mla), 656);
  const Architecture v4 = load_model("deepseek-v4-flash");
  EXPECT_EQ(kv_entry_bytes(v4, v4.layers[2], KvFormat::v4_packed), 584);
  expect_parts(config_error_of([&] { kv_entry_bytes(glm, latent, KvFormat::v4_packed); }),
               {"latent", "v4_packed"});
}

}  // namespace
}  // namespace indexpool
