// One stage of a plan while its terms are gathered. Internal to the layer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "indexpool/model/memory/plan.hpp"

namespace indexpool {

// A layer kind with the layers of the stage that are of it.
struct LayerGroup {
  LayerSpec layer;
  std::int64_t count = 0;
};

class Stage {
 public:
  Stage(const Architecture& architecture, const MemoryRequest& request,
        std::vector<LayerSpec> layers, bool first, bool last);

  const Architecture& architecture() const { return architecture_; }
  const MemoryRequest& request() const { return request_; }
  const std::vector<LayerGroup>& groups() const { return groups_; }
  // The same without regard to the feed-forward part: what caches depend on.
  std::vector<LayerGroup> cache_groups() const;
  bool first() const { return first_; }
  bool last() const { return last_; }
  std::int64_t drafting() const { return drafting_; }  // drafting layers, on the last stage

  KvFormat kv() const { return request_.kv.value_or(architecture_.kv_format); }
  IndexFormat index() const { return request_.index.value_or(architecture_.index_format); }
  std::int64_t tokens_per_key() const {
    return request_.pooled ? architecture_.tokens_per_key() : 1;
  }
  std::int64_t layers_with(bool (*has)(const LayerSpec&)) const;

  // A term of `allocations` equal pieces; what the allocator adds to each is counted apart. Nothing
  // is added for 0 bytes.
  void add(MemoryTerm term, std::int64_t allocations);
  void add_unrounded(MemoryTerm term);
  void add_rounding(MemoryKind kind, Bytes piece, std::int64_t allocations);
  std::vector<MemoryTerm> take_terms();  // with the allocator's

 private:
  const Architecture& architecture_;
  MemoryRequest request_;
  std::vector<LayerGroup> groups_;
  bool first_, last_;
  std::int64_t drafting_ = 0;
  std::vector<MemoryTerm> terms_;
  struct Rounding {
    std::int64_t bytes = 0, pieces = 0;
  };
  Rounding of_parameters_, of_the_rest_;
};

void add_parameters(Stage& stage);
void add_caches(Stage& stage);  // caches and states
void add_tables(Stage& stage);
void add_workspaces(Stage& stage);  // and activations

// Tokens of a manager's block in this engine; 1 without pages.
std::int64_t block_tokens(const Stage& stage);
// Recurrent and convolution state of one linear attention layer on one rank, one sequence.
Bytes linear_state_bytes(const Stage& stage, const LayerSpec& layer);

std::int64_t product(std::initializer_list<std::int64_t> factors, const char* what);
std::int64_t divided_up(std::int64_t a, std::int64_t b);

}  // namespace indexpool
