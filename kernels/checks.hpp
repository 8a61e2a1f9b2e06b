// Why a kernel does not take some arguments, in words; empty when it does.
#pragma once

#include <optional>
#include <string>

#include "indexpool/kernels/args.hpp"

namespace indexpool::kernels {

// "numeric mode \"x\" with index_head_dim 96 has no compiled instance; ..."
std::string no_instance(const Shape& shape);
// Pages must start on 32-byte sectors and hold at least one state.
std::optional<std::string> bad_cache(const PagedCache& cache);
// Rings hold a whole pool, blocks start on 32-byte sectors.
std::optional<std::string> bad_ring(const TailRing& tail, const IndexerConfig& config);
// Pool sizes the pooling kernels take: 1 to 64.
std::optional<std::string> bad_kpool(const IndexerConfig& config);

}  // namespace indexpool::kernels
