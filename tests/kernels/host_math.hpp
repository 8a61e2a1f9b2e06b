// What the pooling kernels should compute, once more and plainly: one pool at a time, loops over
// whole heads, no lanes. Only exp is the kernels' own (arithmetic_test.cpp checks it by itself).
#pragma once

#include <cstdint>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/config.hpp"

namespace indexpool::kernels {

using Head = std::vector<float>;  // D channels

struct HostPool {
  Head y;                            // before rounding to the pooled dtype
  std::vector<std::uint8_t> stored;  // bytes of the codes, or of the elements
  float scale = 0;                   // 0 when not quantised
  PoolChecksum checksum{};
};

HostPool host_pool(const NumericMode& mode, const std::vector<Head>& keys,
                   const std::vector<Head>& gate_scores, const std::vector<Head>& ape);
// Rotated, rounded and quantised query head.
HostPool host_quantise_query(const NumericMode& mode, const Head& query);

float host_round(DType dtype, float value);
// Elements of `head` as stored in `dtype`.
std::vector<std::uint8_t> host_store(DType dtype, const Head& head);

}  // namespace indexpool::kernels
