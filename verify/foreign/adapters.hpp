// How outputs of other frameworks are laid out, by name: a row is an adapter. Internal to the
// layer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/verify/foreign/foreign.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/stored.hpp"

namespace indexpool::verify {

// Where a pool lies: byte offsets of its codes in one tensor and of its scale in another (or in the
// same).
struct PoolPlace {
  std::int64_t codes = 0, scale = 0;
};
struct PoolAddress {
  std::int64_t sequence = 0, pool = 0;  // of the sequence
  std::int64_t row = 0;                 // of all sequences, back to back
};

struct CacheAdapter {
  std::string_view name, meaning;
  std::string_view codes, scales;  // names of the tensors
  bool paged = false;              // bytes where no pool lies must hold the poison
  // Only where the contract names it: its tensors don't tell it from another.
  bool by_name = false;
  PoolPlace (*place)(const ForeignCase& foreign, const NumericMode& mode, PoolAddress address);
};
std::span<const CacheAdapter> cache_adapters();

// Columns of a row of selected tokens. fault(): empty, or the first column that the form does not
// allow. The row was parsed without fault, `pools` are its pools.
struct SelectedRow {
  std::span<const std::int32_t> entries;
  std::span<const std::int64_t> pools;  // ascending
  std::int64_t position = 0, first_key = 0;
  const IndexerConfig& config;
  std::int64_t batch_pools = 0;  // of the longest sequence
};
struct FormAdapter {
  std::string_view name, meaning;
  std::string (*fault)(const SelectedRow& row);
};
std::span<const FormAdapter> tail_adapters();
std::span<const FormAdapter> order_adapters();

struct AccumulationRow {
  std::string_view name, meaning;
  kernels::Accumulation model;
};
std::span<const AccumulationRow> accumulations();

// The row of that name; throws ConfigError "unknown <what> ..." with near names.
template <class Row>
const Row& find_row(std::span<const Row> table, std::string_view what, const std::string& name);
std::string unknown_name(std::string_view what, const std::string& name,
                         const std::vector<std::string>& known);

template <class Row>
const Row& find_row(std::span<const Row> table, std::string_view what, const std::string& name) {
  std::vector<std::string> known;
  for (const Row& row : table) {
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  throw ConfigError(unknown_name(what, name, known));
}

// Bytes of a pool's codes, and of its scale (0 where nothing is quantised).
struct StateBytes {
  std::int64_t codes = 0, scale = 0;
  std::int64_t total() const { return codes + scale; }
};
StateBytes state_bytes(const IndexerConfig& config, const NumericMode& mode);
inline constexpr std::int64_t token_page = 64;  // tokens, and states, of a page of token_pages

// The tensors of a layout, as outputs.
std::vector<TensorNote> cache_outputs(const ForeignCase& foreign, const NumericMode& mode,
                                      const CacheAdapter& adapter);

// The pools of the outputs, taken apart by the adapter.
StoredPools read_foreign_pools(const ForeignCase& foreign, const NumericMode& mode,
                               const CacheAdapter& adapter, const ForeignOutputs& outputs);
// "untouched": bytes of the pages in which no pool ever lay hold 0xff.
Check check_foreign_untouched(const ForeignCase& foreign, const NumericMode& mode,
                              const CacheAdapter& adapter, const ForeignOutputs& outputs);

}  // namespace indexpool::verify
