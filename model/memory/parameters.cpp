#include "indexpool/model/memory/parameters.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/parameter_lists.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t block = 128;       // side of a block that shares an fp8 scale
constexpr std::int64_t group = 32;        // elements of a row that share an fp4 scale
constexpr std::int64_t vocab_align = 64;  // vLLM pads the vocabulary (VocabParallelEmbedding)

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

std::int64_t multiplied(std::int64_t a, std::int64_t b) {
  return checked_product(a, b, "bytes of parameters");
}

std::int64_t share_of(const ParameterTensor& tensor, std::int64_t size, std::int64_t ranks) {
  if (size % ranks != 0) {
    throw ConfigError(fmt::format(
        "{}: {} cannot be split over {} ranks of tensor parallelism; take a number that divides it",
        tensor.name, size, ranks));
  }
  return size / ranks;
}

std::int64_t element_bytes(ParameterFormat format) {
  switch (format) {
    case ParameterFormat::f32:
      return 4;
    case ParameterFormat::i64:
      return 8;
    default:
      return 2;
  }
}

std::int64_t tensor_bytes(const Architecture& architecture, ParameterFormat format,
                          std::int64_t rows, std::int64_t columns) {
  switch (format) {
    case ParameterFormat::fp8_block:
      return checked_sum(
          multiplied(rows, columns),
          multiplied(architecture.scale_bytes,
                     multiplied(divided_up(rows, block), divided_up(columns, block))),
          "bytes of parameters");
    case ParameterFormat::fp4_group:
      return multiplied(rows, divided_up(columns, 2) + divided_up(columns, group));
    default:
      return multiplied(multiplied(rows, columns), element_bytes(format));
  }
}

std::vector<ParameterTensor> mlp_of(const Architecture& architecture, MlpKind kind) {
  return kind == MlpKind::dense ? dense_parameters(architecture)
                                : expert_parameters(architecture, kind);
}

void append(std::vector<ParameterTensor>& all, std::vector<ParameterTensor> more) {
  for (ParameterTensor& tensor : more) all.push_back(std::move(tensor));
}

std::int64_t count_elements(const std::vector<ParameterTensor>& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : tensors) {
    sum = checked_sum(sum, tensor.elements(), "parameters");
  }
  return sum;
}

// Layer norms and, with several residual streams, what mixes them: the map of both sites of a layer
// to (2 + n) n logits from n streams (transformers, Glm5NextTextHyperConnection).
std::vector<ParameterTensor> residual_parameters(const Architecture& architecture) {
  const std::int64_t hidden = architecture.hidden_size, streams = architecture.hc_mult;
  std::vector<ParameterTensor> list = {{"norms", "input_layernorm", 1, hidden},
                                       {"norms", "post_attention_layernorm", 1, hidden}};
  if (streams == 1) return list;
  const std::int64_t mix = (2 + streams) * streams;
  list.push_back({"hyper-connections", "hc_fn", mix, streams * hidden, 2, ParameterFormat::f32});
  list.push_back({"hyper-connections", "hc_base", 1, mix, 2, ParameterFormat::f32});
  list.push_back({"hyper-connections", "hc_scale", 1, 3, 2, ParameterFormat::f32});
  return list;
}

}  // namespace

std::int64_t ParameterTensor::elements() const {
  return multiplied(multiplied(rows, columns), count);
}

std::vector<ParameterTensor> layer_parameters(const Architecture& architecture,
                                              const LayerSpec& layer) {
  std::vector<ParameterTensor> all = attention_parameters(architecture, layer);
  append(all, mlp_of(architecture, layer.mlp));
  append(all, residual_parameters(architecture));
  return all;
}

std::vector<ParameterTensor> draft_parameters(const Architecture& architecture) {
  const std::int64_t hidden = architecture.hidden_size;
  return {{"drafting", "eh_proj", hidden, 2 * hidden, 1, architecture.linear_format},
          {"drafting", "enorm, hnorm, norm", 1, hidden, 3}};
}

std::vector<ParameterTensor> embedding_parameters(const Architecture& architecture) {
  const std::int64_t rows = divided_up(architecture.vocab_size, vocab_align) * vocab_align;
  return {{"embedding", "embed_tokens", rows, architecture.hidden_size, 1, ParameterFormat::bf16,
           Sharding::rows}};
}

std::vector<ParameterTensor> head_parameters(const Architecture& architecture) {
  std::vector<ParameterTensor> list = {{"norms", "norm", 1, architecture.hidden_size}};
  const std::int64_t rows = divided_up(architecture.vocab_size, vocab_align) * vocab_align;
  if (!architecture.tie_word_embeddings) {
    list.push_back({"head", "lm_head", rows, architecture.hidden_size, 1, ParameterFormat::bf16,
                    Sharding::rows});
  }
  return list;
}

Bytes parameter_bytes(const Architecture& architecture, const ParameterTensor& tensor,
                      std::int64_t ranks) {
  std::int64_t rows = tensor.rows, columns = tensor.columns;
  switch (tensor.sharding) {
    case Sharding::replicated:
      break;
    case Sharding::rows:
      rows = share_of(tensor, rows, ranks);
      break;
    case Sharding::columns:
      columns = share_of(tensor, columns, ranks);
      break;
    case Sharding::kv_heads:
      rows =
          tensor.head_rows * std::max<std::int64_t>(1, divided_up(rows / tensor.head_rows, ranks));
      break;
  }
  return Bytes(checked_product(tensor_bytes(architecture, tensor.format, rows, columns),
                               tensor.count, "bytes of parameters"));
}

std::int64_t parameter_count(const Architecture& architecture) {
  std::int64_t sum = checked_sum(count_elements(embedding_parameters(architecture)),
                                 count_elements(head_parameters(architecture)), "parameters");
  for (const LayerSpec& layer : architecture.layers) {
    sum = checked_sum(sum, count_elements(layer_parameters(architecture, layer)), "parameters");
  }
  return sum;
}

}  // namespace indexpool
