#include "indexpool/model/step/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/parameter_lists.hpp"
#include "indexpool/model/step/planner.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// Layers alike, and how many there are.
template <class Kind>
struct Alike {
  Kind kind;
  std::int64_t count = 0;
};
template <class Kind>
void count_kind(std::vector<Alike<Kind>>& kinds, const Kind& kind) {
  const auto same = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const Alike<Kind>& each) { return each.kind == kind; });
  if (same == kinds.end()) {
    kinds.push_back({kind, 1});
  } else {
    ++same->count;
  }
}

Tensors tensors_of(const Planner& p, std::vector<ParameterTensor> list) {
  return {p.a, std::move(list), p.ranks()};
}

// Routed experts lie apart: on their own ranks, where experts are not sliced.
void plan_mlp(Planner& p, MlpKind kind) {
  if (kind == MlpKind::dense) {
    Tensors tensors = tensors_of(p, dense_parameters(p.a));
    Tensors none = tensors_of(p, {});
    plan_feed_forward(p, tensors, none, kind);
    return tensors.require_empty();
  }
  std::vector<ParameterTensor> others, routed;
  for (ParameterTensor& tensor : expert_parameters(p.a, kind)) {
    (tensor.group == "routed experts" ? routed : others).push_back(std::move(tensor));
  }
  Tensors tensors = tensors_of(p, std::move(others));
  Tensors experts(p.a, std::move(routed), p.serving.expert_parallel ? 1 : p.ranks());
  plan_feed_forward(p, tensors, experts, kind);
  tensors.require_empty();
  experts.require_empty();
}

void plan_layers(Planner& p, const std::vector<LayerSpec>& layers, std::int64_t times) {
  std::vector<Alike<LayerSpec>> attentions;
  std::vector<Alike<MlpKind>> mlps;
  for (LayerSpec layer : layers) {
    count_kind(mlps, layer.mlp);
    layer.mlp = MlpKind::dense;
    count_kind(attentions, layer);
  }
  p.count = static_cast<std::int64_t>(layers.size()) * times;
  plan_residual(p);
  for (const Alike<LayerSpec>& each : attentions) {
    p.count = each.count * times;
    Tensors tensors = tensors_of(p, attention_parameters(p.a, each.kind));
    plan_attention(p, tensors, each.kind);
    tensors.require_empty();
  }
  for (const Alike<MlpKind>& each : mlps) {
    p.count = each.count * times;
    plan_mlp(p, each.kind);
  }
}

// Once for each drafted token, a row of each sequence; a prompt's rows pass once.
void plan_drafting(Planner& p) {
  const std::int64_t drafts = p.serving.request.drafts;
  if (drafts == 0) return;
  const bool decode = p.serving.phase == Phase::decode;
  const auto layers = static_cast<std::int64_t>(p.a.draft_layers.size());
  const std::int64_t times = decode ? divided_up(drafts, layers) : 1;
  p.of_sequences = decode;
  p.count = layers * times;
  p.group = "drafting";
  Tensors tensors = tensors_of(p, draft_parameters(p.a));
  p.add("eh_proj", tensors.product(tensors.take("eh_proj")));
  const std::int64_t row = p.a.hidden_size * bf16_bytes;
  p.add("enorm, hnorm, norm", Stream{3 * row, 3 * row, tensors.take_bytes({"enorm, hnorm, norm"}),
                                     0, 12 * p.a.hidden_size, 2});
  tensors.require_empty();
  plan_layers(p, p.a.draft_layers, times);
  if (decode) {
    p.count = layers * times;
    plan_head(p);
  }
  p.of_sequences = false;
}

void check(std::int64_t value, std::int64_t least, std::int64_t most, const char* what) {
  if (value >= least && value <= most) return;
  throw ConfigError(fmt::format("{}: found {}, expected {} to {}", what, value, least, most));
}

void check_serving(const Architecture& a, const Serving& serving) {
  MemoryRequest request = serving.request;
  request.tokens = std::max<std::int64_t>(request.tokens, 1);
  model_memory(a, request);  // refuses what cannot be split or stored so
  if (!serving.expert_parallel) return;
  const std::int64_t ranks = request.tensor_parallel;
  if (a.mixture.routed == 0 || a.mixture.routed % ranks != 0) {
    throw ConfigError(fmt::format(
        "{} has {} routed experts, which cannot lie whole on {} ranks; take a number that divides "
        "them, or slice experts",
        a.name, a.mixture.routed, ranks));
  }
}

Architecture in_format(const Architecture& architecture, const MemoryRequest& request) {
  Architecture changed = architecture;
  if (request.parameters) changed.linear_format = changed.expert_format = *request.parameters;
  return changed;
}

}  // namespace

Plan plan_step(const Architecture& architecture, const Serving& serving) {
  check_serving(architecture, serving);
  const Architecture changed = in_format(architecture, serving.request);
  Planner p(changed, serving);
  plan_embedding(p);
  plan_layers(p, changed.layers, 1);
  plan_stages(p);
  p.of_sequences = serving.phase == Phase::prefill;
  p.count = 1;
  plan_head(p);
  p.of_sequences = false;
  plan_drafting(p);
  return std::move(p.plan);
}

Size size_of(const Serving& serving, std::int64_t tokens, std::int64_t sequences) {
  check(tokens, 1, std::int64_t{1} << 40, "tokens of a sequence");
  check(sequences, 1, std::int64_t{1} << 24, "sequences");
  if (serving.phase == Phase::prefill) {
    return {1, std::min(tokens, serving.request.prefill_chunk), tokens};
  }
  return {sequences, std::min(tokens, 1 + serving.request.drafts), tokens};
}

Size drafting_size(const Size& size) { return {size.sequences, 1, size.tokens}; }

Size on_one_rank(const Serving& serving, Size size) {
  const std::int64_t share = divided_up(size.tokens, serving.request.context_parallel);
  size.tokens = std::max(share, size.rows_per_sequence);
  return size;
}

}  // namespace indexpool::step
