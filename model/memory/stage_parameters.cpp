// Parameters of a stage, by group.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/parameters.hpp"
#include "indexpool/model/memory/stage.hpp"

namespace indexpool {
namespace {

struct Group {
  std::string name;
  Bytes bytes, whole;         // on one rank, and of all
  std::int64_t elements = 0;  // of all ranks
  std::vector<std::string> formats;
};

std::string format_name(const Architecture& architecture, ParameterFormat format) {
  switch (format) {
    case ParameterFormat::f32:
      return "f32";
    case ParameterFormat::bf16:
      return "bf16";
    case ParameterFormat::i64:
      return "i64";
    case ParameterFormat::fp8_block:
      return fmt::format("fp8, a scale of {} B for 128 x 128", architecture.scale_bytes);
    case ParameterFormat::fp4_group:
      return "fp4, a scale of 1 B for 32";
  }
  return "";
}

class Groups {
 public:
  explicit Groups(Stage& stage) : stage_(stage) {}

  void add(const std::vector<ParameterTensor>& tensors, std::int64_t layers) {
    const Architecture& architecture = stage_.architecture();
    for (const ParameterTensor& tensor : tensors) {
      const Bytes one = parameter_bytes(architecture, tensor, stage_.request().tensor_parallel);
      Group& group = named(tensor.group);
      group.whole = Bytes(checked_sum(
          group.whole.value,
          product({parameter_bytes(architecture, tensor).value, layers}, "bytes of parameters"),
          "bytes of parameters"));
      group.bytes =
          Bytes(checked_sum(group.bytes.value, product({one.value, layers}, "bytes of parameters"),
                            "bytes of parameters"));
      group.elements = checked_sum(
          group.elements, product({tensor.elements(), layers}, "parameters"), "parameters");
      const std::string format = format_name(architecture, tensor.format);
      if (std::find(group.formats.begin(), group.formats.end(), format) == group.formats.end()) {
        group.formats.push_back(format);
      }
      stage_.add_rounding(MemoryKind::parameters, Bytes(divided_up(one.value, tensor.count)),
                          tensor.count * layers);
    }
  }

  void finish() {
    const std::int64_t ranks = stage_.request().tensor_parallel;
    for (const Group& group : groups_) {
      std::string formula =
          fmt::format("{} elements ({})", group.elements, fmt::join(group.formats, "; "));
      if (ranks > 1) {
        formula += group.bytes == group.whole ? ", whole on every rank"
                                              : fmt::format(", this rank's share of {}", ranks);
      }
      stage_.add_unrounded({MemoryKind::parameters, group.name, group.bytes, 0, std::move(formula),
                            stage_.architecture().source});
    }
  }

 private:
  Group& named(const std::string& name) {
    for (Group& group : groups_) {
      if (group.name == name) return group;
    }
    return groups_.emplace_back(Group{name, {}, {}, 0, {}});
  }

  Stage& stage_;
  std::vector<Group> groups_;
};

// Decoding multiplies queries by the key half of kv_b_proj and outputs by the value half; engines
// keep both halves in bf16 beside the checkpoint's matrix.
void add_absorbed(Stage& stage) {
  const Architecture& a = stage.architecture();
  const std::int64_t layers = stage.layers_with(
      [](const LayerSpec& layer) { return layer.attention == AttentionKind::latent; });
  if (stage.request().engine == Engine::packed || layers == 0) return;
  const std::int64_t heads = a.num_attention_heads / stage.request().tensor_parallel;
  const std::int64_t width = a.qk_nope_head_dim + a.v_head_dim;
  stage.add(
      {MemoryKind::parameters, "absorbed kv_b_proj",
       Bytes(product({layers, heads, width, a.kv_lora_rank, 2}, "bytes of parameters")), layers,
       fmt::format("{} layers x {} heads x {} x {} x 2 B", layers, heads, width, a.kv_lora_rank),
       "vLLM, MLACommonImpl.process_weights_after_loading (W_UK, W_UV)"},
      2 * layers);
}

}  // namespace

void add_parameters(Stage& stage) {
  const Architecture& architecture = stage.architecture();
  Groups groups(stage);
  if (stage.first()) groups.add(embedding_parameters(architecture), 1);
  for (const LayerGroup& group : stage.groups()) {
    groups.add(layer_parameters(architecture, group.layer), group.count);
  }
  if (stage.drafting() > 0) groups.add(draft_parameters(architecture), stage.drafting());
  if (stage.last()) groups.add(head_parameters(architecture), 1);
  groups.finish();
  add_absorbed(stage);
}

}  // namespace indexpool
