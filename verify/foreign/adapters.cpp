#include "indexpool/verify/foreign/adapters.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/cache_layout.hpp"
#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify {
namespace {

std::int64_t entry(const Tensor& table, std::int64_t row, std::int64_t column) {
  return table.as<std::int32_t>()[static_cast<std::size_t>(row * table.dim(1) + column)];
}

PoolPlace in_rows(const ForeignCase& foreign, const NumericMode& mode, PoolAddress address) {
  const StateBytes bytes = state_bytes(foreign.test_case.inputs.config, mode);
  const std::int64_t first = address.row * bytes.total();
  return {first, first + bytes.codes};
}

PoolPlace apart(const ForeignCase& foreign, const NumericMode& mode, PoolAddress address) {
  const StateBytes bytes = state_bytes(foreign.test_case.inputs.config, mode);
  return {address.row * bytes.codes, address.row * bytes.scale};
}

// State `state` of page `page`, codes first, then scales.
PoolPlace planar(StateBytes bytes, std::int64_t states, std::int64_t page, std::int64_t state) {
  const std::int64_t first = page * states * bytes.total();
  return {first + state * bytes.codes, first + states * bytes.codes + state * bytes.scale};
}

PoolPlace in_planar_pages(const ForeignCase& foreign, const NumericMode& mode,
                          PoolAddress address) {
  const std::int64_t states = foreign.paging.states_per_page;
  return planar(state_bytes(foreign.test_case.inputs.config, mode), states,
                entry(foreign.paging.block_table, address.sequence, address.pool / states),
                address.pool % states);
}

PoolPlace in_interleaved_pages(const ForeignCase& foreign, const NumericMode& mode,
                               PoolAddress address) {
  const std::int64_t states = foreign.paging.states_per_page;
  const StateBytes bytes = state_bytes(foreign.test_case.inputs.config, mode);
  const std::int64_t page =
      entry(foreign.paging.block_table, address.sequence, address.pool / states);
  const std::int64_t first = (page * states + address.pool % states) * bytes.total();
  return {first, first + bytes.codes};
}

// A page for every 64 tokens, of which the first of every index_kpool holds the pools of them all.
PoolPlace in_token_pages(const ForeignCase& foreign, const NumericMode& mode, PoolAddress address) {
  const IndexerConfig& config = foreign.test_case.inputs.config;
  const std::int64_t page = entry(foreign.paging.token_page_table, address.sequence,
                                  address.pool / token_page * config.index_kpool);
  return planar(state_bytes(config, mode), token_page, page, address.pool % token_page);
}

constexpr CacheAdapter cache_table[] = {
    {"rows", "a row of D codes and the f32 scale for each pool, sequences back to back",
     "pool_rows", "pool_rows", false, false, in_rows},
    {"split", "codes and scales apart, a row for each pool, sequences back to back", "pool_codes",
     "pool_scales", false, false, apart},
    {"planar", "pages of all codes, then all scales; block_table says which (vLLM, DeepGEMM)",
     "pages", "pages", true, false, in_planar_pages},
    {"interleaved",
     "pages of rows of D codes and the f32 scale; block_table says which (vLLM, CPU)", "pages",
     "pages", true, true, in_interleaved_pages},
    {"token_pages",
     "a planar page for every 64 tokens, pools in the first of every index_kpool; "
     "token_page_table says which (SGLang)",
     "pages", "pages", true, true, in_token_pages},
};

// Calls visit(place) for every pool of every sequence, up to `pools_of(sequence)`.
template <class Count, class Visit>
void for_each_pool(const ForeignCase& foreign, const NumericMode& mode, const CacheAdapter& adapter,
                   const Count& pools_of, const Visit& visit) {
  PoolAddress address;
  for (std::size_t s = 0; s < foreign.test_case.inputs.sequences.size(); ++s) {
    address.sequence = static_cast<std::int64_t>(s);
    for (address.pool = 0; address.pool < pools_of(s); ++address.pool) {
      visit(adapter.place(foreign, mode, address));
      ++address.row;
    }
  }
}

}  // namespace

std::span<const CacheAdapter> cache_adapters() { return cache_table; }

StateBytes state_bytes(const IndexerConfig& config, const NumericMode& mode) {
  return {config.index_head_dim * info(mode.cache).bytes, mode.quantised() ? 4 : 0};
}

std::vector<TensorNote> cache_outputs(const ForeignCase& foreign, const NumericMode& mode,
                                      const CacheAdapter& adapter) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const StateBytes bytes = state_bytes(inputs.config, mode);
  const std::int64_t pools = first_pools(inputs).back(), dim = inputs.config.index_head_dim;
  const std::string codes(adapter.codes), scales(adapter.scales);
  const std::string meaning =
      fmt::format("cached pools, layout {}: {}", adapter.name, adapter.meaning);
  if (adapter.paged) {
    const bool by_token = adapter.name == "token_pages";
    const std::int64_t pages = by_token ? foreign.paging.token_pages : foreign.paging.pages;
    const std::int64_t states = by_token ? token_page : foreign.paging.states_per_page;
    return {{codes,
             {DType::u8},
             {pages, states * bytes.total()},
             meaning + "; fill with 0xff before the first write"}};
  }
  if (codes == scales) return {{codes, {DType::u8}, {pools, bytes.total()}, meaning}};
  std::vector<DType> dtypes{mode.cache};
  if (info(mode.cache).bytes == 1) dtypes.push_back(DType::u8);
  std::vector<TensorNote> notes{{codes, dtypes, {pools, dim}, meaning + "; the codes"}};
  if (mode.quantised()) notes.push_back({scales, {DType::f32}, {pools}, meaning + "; the scales"});
  return notes;
}

StoredPools read_foreign_pools(const ForeignCase& foreign, const NumericMode& mode,
                               const CacheAdapter& adapter, const ForeignOutputs& outputs) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const StateBytes bytes = state_bytes(inputs.config, mode);
  const std::byte* codes = outputs.tensors.at(std::string(adapter.codes)).data();
  const std::byte* scales =
      mode.quantised() ? outputs.tensors.at(std::string(adapter.scales)).data() : nullptr;
  StoredPools stored;
  stored.head_dim = inputs.config.index_head_dim;
  const auto pools_of = [&](std::size_t s) {
    return inputs.sequences[s].length / inputs.config.index_kpool;
  };
  for_each_pool(foreign, mode, adapter, pools_of, [&](PoolPlace place) {
    const std::byte* from = codes + place.codes;
    for (std::int64_t c = 0; c < stored.head_dim; ++c) {
      stored.codes.push_back(load_element(mode.cache, from, c));
    }
    std::vector<std::byte> raw(from, from + bytes.codes);
    double scale = 1;
    if (scales != nullptr) {
      float value = 0;  // may lie at any byte of an interleaved row
      std::memcpy(&value, scales + place.scale, sizeof value);
      scale = value;
      raw.insert(raw.end(), scales + place.scale, scales + place.scale + bytes.scale);
    }
    stored.scales.push_back(scale);
    stored.raw.push_back(std::move(raw));
    ++stored.pools;
  });
  return stored;
}

Check check_foreign_untouched(const ForeignCase& foreign, const NumericMode& mode,
                              const CacheAdapter& adapter, const ForeignOutputs& outputs) {
  const IndexerConfig& config = foreign.test_case.inputs.config;
  const StateBytes bytes = state_bytes(config, mode);
  const Tensor& pages = outputs.tensors.at(std::string(adapter.codes));
  std::vector<char> written(static_cast<std::size_t>(pages.bytes().value), 0);
  const auto mark = [&](std::int64_t first, std::int64_t count) {
    std::fill_n(written.begin() + first, count, char{1});
  };
  const auto pools_of = [&](std::size_t s) { return foreign.reach[s] / config.index_kpool; };
  for_each_pool(foreign, mode, adapter, pools_of, [&](PoolPlace place) {
    mark(place.codes, bytes.codes);
    mark(place.scale, bytes.scale);
  });
  Tally tally("untouched");
  const std::int64_t page_bytes = pages.dim(1);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != 0) continue;
    tally.compare(pages.data()[i] == poison, [&] {
      const auto at = static_cast<std::int64_t>(i);
      return fmt::format(
          "page {}, byte {}: {:#04x} where no pool lies (pages start filled with 0xff)",
          at / page_bytes, at % page_bytes, std::to_integer<int>(pages.data()[i]));
    });
  }
  return std::move(tally).finish();
}

}  // namespace indexpool::verify
