#include "indexpool/verify/faults/cost.hpp"

#include "indexpool/verify/faults/seal.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr double pair_bytes = sizeof(IntegerPair), crc_bytes = 4, f32_pair_bytes = 8;
constexpr double seal_bytes = sizeof(PageSeal);

}  // namespace

std::vector<LayerCost> layer_costs(const PageShape& shape, std::int64_t index_kpool) {
  const auto page = static_cast<double>(shape.bytes());
  const auto state = static_cast<double>(shape.state_bytes());
  const auto states = static_cast<double>(shape.states);
  const std::int64_t pools = tokens_of_cost / index_kpool;
  const auto pages = static_cast<double>((pools + shape.states - 1) / shape.states);
  // Keys and gate scores of a pool, read once more when they are not checked as they are loaded.
  const auto source =
      static_cast<double>(2 * index_kpool * shape.head_dim * info(shape.mode.storage).bytes);
  constexpr double pair = pair_bytes;
  const auto row = [&](std::string_view name, std::string_view where, double stored, double scratch,
                       double written, double read, double read_per_page) {
    return LayerCost{name,          where,   stored, stored / page,
                     scratch,       written, read,   read_per_page * pages,
                     stored * pages};
  };
  return {
      row("source", "after the kernel read its rows", 0, crc_bytes, crc_bytes, crc_bytes + source,
          0),
      row("linear", "at the fold", 0, f32_pair_bytes, f32_pair_bytes, f32_pair_bytes + state, 0),
      row("form", "at the fold, by every consumer", 0, 0, 0, 0, 0),
      row("pair", "at the fold, by every consumer", pair, pair, 2 * pair, 2 * pair, pair),
      // The seal's CRC and its count of states.
      row("crc", "on storage and transfer", seal_bytes - pair_bytes, 0, seal_bytes - pair_bytes,
          seal_bytes - pair_bytes + state, 0),
      // The fold reads a state once for all; a seal is one 16-byte access.
      row("layered", "all of these", seal_bytes, crc_bytes + sizeof(kernels::PoolChecksum),
          crc_bytes + sizeof(kernels::PoolChecksum) + seal_bytes,
          crc_bytes + source + sizeof(kernels::PoolChecksum) + state + seal_bytes, seal_bytes),
      row("pair_per_pool", "not chosen", pair * states, 0, pair, 0, pair * states),
  };
}

}  // namespace indexpool::verify::faults
