#include "indexpool/model/memory/stage.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool {

std::int64_t product(std::initializer_list<std::int64_t> factors, const char* what) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result = checked_product(result, factor, what);
  return result;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

Bytes allocator_rounded(Bytes bytes) {
  constexpr std::int64_t small = 512, large = std::int64_t{2} << 20;
  constexpr std::int64_t large_from = std::int64_t{10} << 20;
  const std::int64_t step = bytes.value >= large_from ? large : small;
  return Bytes(checked_product(divided_up(bytes.value, step), step, "rounded bytes"));
}

namespace {

void count_layers(std::vector<LayerGroup>& groups, const LayerSpec& layer, std::int64_t count) {
  const auto same = std::find_if(groups.begin(), groups.end(),
                                 [&](const LayerGroup& group) { return group.layer == layer; });
  if (same == groups.end()) {
    groups.push_back({layer, count});
  } else {
    same->count += count;
  }
}

}  // namespace

Stage::Stage(const Architecture& architecture, const MemoryRequest& request,
             std::vector<LayerSpec> layers, bool first, bool last)
    : architecture_(architecture), request_(request), first_(first), last_(last) {
  if (last && request.drafts > 0) {
    drafting_ = static_cast<std::int64_t>(architecture.draft_layers.size());
    layers.insert(layers.end(), architecture.draft_layers.begin(), architecture.draft_layers.end());
  }
  for (const LayerSpec& layer : layers) count_layers(groups_, layer, 1);
}

std::vector<LayerGroup> Stage::cache_groups() const {
  std::vector<LayerGroup> merged;
  for (const LayerGroup& group : groups_) {
    LayerSpec layer = group.layer;
    layer.mlp = MlpKind::dense;
    count_layers(merged, layer, group.count);
  }
  return merged;
}

std::int64_t Stage::layers_with(bool (*has)(const LayerSpec&)) const {
  std::int64_t count = 0;
  for (const LayerGroup& group : groups_) count += has(group.layer) ? group.count : 0;
  return count;
}

void Stage::add(MemoryTerm term, std::int64_t allocations) {
  if (term.bytes.value == 0) return;
  add_rounding(term.kind, Bytes(divided_up(term.bytes.value, allocations)), allocations);
  add_unrounded(std::move(term));
}

void Stage::add_rounding(MemoryKind kind, Bytes piece, std::int64_t allocations) {
  Rounding& rounding = kind == MemoryKind::parameters ? of_parameters_ : of_the_rest_;
  const std::int64_t added = allocator_rounded(piece).value - piece.value;
  rounding.bytes = checked_sum(rounding.bytes, checked_product(added, allocations, "rounded bytes"),
                               "rounded bytes");
  rounding.pieces += allocations;
}

void Stage::add_unrounded(MemoryTerm term) {
  if (term.bytes.value == 0) return;
  // Parts of one name are one line: layers of several kinds keep the same cache.
  const auto same = std::find_if(terms_.begin(), terms_.end(), [&](const MemoryTerm& other) {
    return other.kind == term.kind && other.name == term.name;
  });
  if (same == terms_.end()) {
    terms_.push_back(std::move(term));
    return;
  }
  same->bytes = Bytes(checked_sum(same->bytes.value, term.bytes.value, "bytes of a term"));
  same->layers += term.layers;
  same->formula += " + " + term.formula;
}

std::vector<MemoryTerm> Stage::take_terms() {
  const auto round = [&](const char* name, const Rounding& rounding) {
    if (request_.engine == Engine::packed) return;
    add_unrounded({MemoryKind::allocator, name, Bytes(rounding.bytes), 0,
                   fmt::format("{} allocations, each up to a multiple of 512 B, from 10 MiB on of "
                               "2 MiB",
                               rounding.pieces),
                   "PyTorch, c10/cuda/CUDACachingAllocator.cpp"});
  };
  round("allocator rounding, parameters", of_parameters_);
  round("allocator rounding, the rest", of_the_rest_);
  std::stable_sort(terms_.begin(), terms_.end(), [](const MemoryTerm& a, const MemoryTerm& b) {
    return static_cast<int>(a.kind) < static_cast<int>(b.kind);
  });
  return std::move(terms_);
}

}  // namespace indexpool
