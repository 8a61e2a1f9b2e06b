#include "indexpool/verify/faults/sites.hpp"

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr LayerInfo layer_table[layer_count] = {
    {layer_source, "source", "CRC32C of the rows a kernel reads, taken where they were made"},
    {layer_linear, "linear", "f32 pair in the kernel, before rounding, against what was stored"},
    {layer_form, "form", "numbers only, a scale its rule gives, the largest code fills the range"},
    {layer_pair, "pair",
     "exact pair on what is stored, from the kernel, folded per page, checked by every consumer"},
    {layer_crc, "crc", "CRC32C of the page's states, checked on storage and transfer"},
};

constexpr unsigned by_consumer = layer_form | layer_pair | layer_crc;
constexpr unsigned after_kernel = by_consumer | layer_linear;
constexpr unsigned all_layers = after_kernel | layer_source;

constexpr Site table[] = {
    {{"inputs", "keys of a pool, after the checksum of their rows", Protection::full, all_layers},
     strike_keys},
    {{"gates", "gate scores of a pool, after the checksum of their rows", Protection::full,
      all_layers},
     strike_gates},
    {{"ape", "position bias, after the checksum of the table", Protection::full, all_layers},
     strike_ape},
    {{"head_weights", "head weights of a query, after the checksum of their row", Protection::full,
      layer_source},
     strike_head_weights},
    {{"fresh_codes", "codes between the kernel's store and the fold", Protection::full,
      after_kernel},
     strike_fresh_codes},
    {{"fresh_scales", "scales between the kernel's store and the fold", Protection::full,
      after_kernel},
     strike_fresh_scales},
    {{"fresh_sums", "a pool's checksums between the kernel's store and the fold", Protection::full,
      after_kernel},
     strike_fresh_sums},
    {{"codes", "codes of a sealed page", Protection::full, by_consumer}, strike_codes},
    {{"scales", "scales of a sealed page", Protection::full, by_consumer}, strike_scales},
    {{"pages", "anything of a sealed page: codes, scales, states not in use, padding",
      Protection::full, by_consumer},
     strike_pages},
    {{"checksums", "the seals themselves", Protection::full, by_consumer}, strike_seals},
    {{"unsealed_inputs", "keys before any checksum is taken: no layer compares them with anything",
      Protection::none, all_layers},
     strike_keys_unsealed},
};

}  // namespace

std::span<const Site> sites() { return table; }

const LayerInfo (&layers())[layer_count] { return layer_table; }

std::vector<std::string> site_names() {
  std::vector<std::string> names;
  for (const Site& site : table) names.emplace_back(site.info.name);
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const FaultModel& model : fault_models()) names.emplace_back(model.name);
  return names;
}

const SiteInfo& find_site(std::string_view name) {
  for (const Site& site : table) {
    if (site.info.name == name) return site.info;
  }
  const std::vector<std::string> known = site_names(), near = near_names(name, known);
  throw ConfigError(fmt::format("there is no site '{}'; {}: {}", name,
                                near.empty() ? "the sites are" : "near names",
                                fmt::join(near.empty() ? known : near, ", ")));
}

}  // namespace indexpool::verify::faults
