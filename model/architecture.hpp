// A whole model as its cache and its parameters see it: every layer's kind and every size, read
// from a checkpoint's published config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool {

enum class AttentionKind {
  latent,         // MLA: one latent of kv_lora_rank + qk_rope_head_dim a token
  grouped_query,  // keys and values of num_key_value_heads heads a token
  kda,            // Kimi delta attention: a recurrent state, nothing per token
  gated_delta,    // gated delta rule of Qwen: likewise
  window,         // DeepSeek-V4: the last sliding_window tokens
  compressed,     // DeepSeek-V4: window, and one entry for compress_ratio tokens (CSA, HCA)
  pooled_form     // a published form of pooled cache, see PooledForm
};
const char* to_string(AttentionKind kind);

enum class MlpKind { dense, moe, hash_moe };

struct LayerSpec {
  AttentionKind attention = AttentionKind::latent;
  MlpKind mlp = MlpKind::dense;
  bool indexer = false;             // has index keys of its own (a sharing layer has none)
  std::int64_t compress_ratio = 0;  // of a compressed layer

  bool operator==(const LayerSpec&) const = default;
};

// What one index key stands for.
enum class IndexPooling {
  none,         // a token (DeepSeek-V3.2, GLM-5)
  kpool,        // index_kpool tokens, softmax of gate scores (GLM-5.3-Flash)
  csa,          // index_kpool tokens, overlapping windows of twice as many (DeepSeek-V4)
  mean,         // index_kpool tokens, the mean (Qwen4)
  block_scores  // a token; scores, not keys, are pooled in blocks (MiniMax-M3)
};

// How an index key is stored.
enum class IndexFormat {
  fp8,    // a byte an element and an f32 scale
  mxfp4,  // half a byte an element and a UE8M0 scale for 32
  bf16,
  f32
};
const char* to_string(IndexFormat format);

// How a token's latent, or its keys and values, are stored.
enum class KvFormat {
  f32,
  bf16,
  fp8,         // a byte an element, one scale for the whole tensor
  fp8_scaled,  // a byte an element of the latent, an f32 scale for 128; a rope part stays bf16
  fp8_ds_mla,  // FlashMLA: 512 codes, 4 f32 scales, 64 bf16 rope elements, kept when there is none
  v4_packed    // FlashMLA MODEL1: 448 codes, 64 bf16, 7 UE8M0 scales and a pad byte: 584
};
const char* to_string(KvFormat format);

// How a matrix lies in a checkpoint.
enum class ParameterFormat {
  f32,
  bf16,
  i64,
  fp8_block,  // e4m3, a scale for each block of 128 x 128
  fp4_group   // two elements a byte, a UE8M0 scale for 32 of a row
};

struct LinearAttention {
  std::int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv_kernel = 0;
};

struct Mixture {
  std::int64_t routed = 0, shared = 0, per_token = 0;
  std::int64_t intermediate = 0, shared_intermediate = 0;
};

// A published pooled cache: `vectors` vectors of `dim` elements become one, and `kept` elements of
// them are stored as they were. In `heads` heads; the vectors belong to one token, or to `vectors`
// consecutive ones.
struct PooledForm {
  std::string id;
  bool of_one_token = false;
  std::int64_t heads = 1, vectors = 4, dim = 0, kept = 0;
};

struct Architecture {
  std::string name, source, model_type;
  std::vector<LayerSpec> layers, draft_layers;  // draft_layers: multi-token prediction
  std::int64_t hidden_size = 0, vocab_size = 0, max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  std::int64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0;
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  std::int64_t o_groups = 0, o_lora_rank = 0, sliding_window = 0;
  std::int64_t hc_mult = 1;  // residual streams
  std::int64_t dense_intermediate = 0;
  LinearAttention linear;
  Mixture mixture;
  PooledForm form;  // of pooled_form layers
  bool attention_output_gate = false;

  IndexerConfig indexer;
  IndexPooling pooling = IndexPooling::none;
  IndexFormat index_format = IndexFormat::fp8;
  KvFormat kv_format = KvFormat::bf16;
  std::string numeric_mode;           // of the kernels
  std::int64_t states_per_page = 64;  // index keys a page holds

  ParameterFormat linear_format = ParameterFormat::bf16;  // of projections
  ParameterFormat expert_format = ParameterFormat::bf16;
  bool indexer_in_linear_format = false;  // else bf16
  std::int64_t scale_bytes = 4;           // of an fp8_block
  std::string parameters_left_out;        // parts of the checkpoint that are not counted, or ""

  // Tokens an index key stands for.
  std::int64_t tokens_per_key() const {
    return pooling == IndexPooling::none || pooling == IndexPooling::block_scores
               ? 1
               : indexer.index_kpool;
  }
  std::int64_t indexer_layers() const;
};

// A built-in name, a file of ours ({"name", "source", ..., "config"}), or a checkpoint's
// config.json. ConfigError says file and JSON pointer.
Architecture load_model(const std::string& name_or_path);
// What the indexer's kernels need of it.
ArchitectureConfig indexer_view(const Architecture& architecture);

// Bytes of one stored index key, and of one token's entry in a layer of latents or of keys and
// values. ConfigError for a format that the layer cannot have.
std::int64_t index_key_bytes(const Architecture& architecture, IndexFormat format);
std::int64_t kv_entry_bytes(const Architecture& architecture, const LayerSpec& layer,
                            KvFormat format);

}  // namespace indexpool
