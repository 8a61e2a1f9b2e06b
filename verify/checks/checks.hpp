// The checks of a verdict. Each looks at one property and returns what it found; none knows how the
// outputs came about.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reference/golden.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/stages.hpp"
#include "indexpool/verify/stored.hpp"

namespace indexpool::verify {

// Which pools a check looks at, by pool of all sequences.
using Mask = std::span<const char>;

// --- pools ---
// "bound": stored values of an unquantised cache lie in the reference's enclosure.
Check check_pool_bound(const IndexerInputs& inputs, const StoredPools& stored,
                       const reference::Pooled& expected, Mask mine);
// "scale": the scale is one that an amax within the enclosure gives.
Check check_pool_scale(const IndexerInputs& inputs, const StoredPools& stored,
                       const reference::Pooled& expected, Mask mine);
// "quantiser": each code is one that the enclosure gives with the scale that was stored.
Check check_pool_quantiser(const IndexerInputs& inputs, const StoredPools& stored,
                           const reference::Pooled& expected, Mask mine);
// "checksum": the f32 pair against the reference's sums, the exact pair against what was stored.
// `unrounded` is the pooled key before its rounding (mean_before_rounding).
Check check_checksum(const IndexerInputs& inputs, const StoredPools& stored,
                     std::span<const kernels::PoolChecksum> checksums,
                     const reference::Bounded& unrounded, Mask mine);
reference::Bounded mean_before_rounding(const IndexerInputs& inputs);
// "weight_sum": the pools of a run in which every key was 1 are 1, and its checksums D.
Check check_weight_sum(const IndexerInputs& ones, const StoredPools& stored,
                       std::span<const kernels::PoolChecksum> checksums,
                       const reference::Pooled& expected, Mask mine);
// "untouched": bytes of the cache that no job writes hold their poison.
Check check_cache_untouched(const CacheLayout& layout, const CacheOutput& output);
// "tail": the ring holds exactly the rows last written to it, and its padding the poison.
Check check_tail(const CacheInputs& cache, const std::vector<std::byte>& tail);
// "schedule": pools are byte for byte those of a one-shot prefill.
Check check_schedule(const IndexerInputs& inputs, const StoredPools& stored,
                     const StoredPools& one_shot, Mask mine);

// --- quantised queries ---
Check check_query_scale(const IndexerInputs& inputs, const QueryOutput& output,
                        const reference::Bounded& rotated);
Check check_query_quantiser(const IndexerInputs& inputs, const QueryOutput& output,
                            const reference::Bounded& rotated);

// --- logits ---
// Enclosures by sequence, [rows, pools of its last row], from the operands that were stored.
struct LogitBounds {
  std::vector<reference::Bounded> sequences;
};
struct Operands {
  std::vector<double> queries;       // [N, H, D] code values
  std::vector<double> query_scales;  // [N, H]; empty: 1
  StoredPools pools;
  double smallest_normal = 0;  // of the dtype in which products are taken
};
LogitBounds logit_bounds(const IndexerInputs& inputs, const Operands& operands,
                         const reference::Accumulation& accumulation);
Check check_logit_bound(const IndexerInputs& inputs, const LogitBounds& bounds,
                        std::span<const float> logits, std::int64_t stride, bool about_ties);
// "untouched": columns beyond the visible pools hold their poison.
Check check_logits_untouched(const IndexerInputs& inputs, std::span<const float> logits,
                             std::int64_t stride);

// --- selection ---
// A row of selected tokens, taken apart.
struct ParsedRow {
  std::vector<std::int64_t> pools;  // ascending
  std::string fault;                // empty, or why the row is not a selection
};
// Tokens of a row in any order: whole pools, distinct, in range, causal, the forced tail complete,
// as many pools as the contract says. `nan_pools` of the visible ones can't be selected.
ParsedRow parse_selection(std::span<const std::int32_t> row, std::int64_t position,
                          std::int64_t first_key, const IndexerConfig& config,
                          std::int64_t nan_pools = 0);
// Pools of each row whose logit is NaN, by row.
std::vector<std::int64_t> nan_pools(const IndexerInputs& inputs, std::span<const float> logits,
                                    std::int64_t stride);
// "structure": parse_selection of every row, and the columns of kernels/args.hpp. `nan_pools` by
// row; empty: none.
Check check_structure(const IndexerInputs& inputs, std::span<const std::int32_t> selection,
                      std::span<const std::int64_t> nan_pools = {});
// "tie_rule": the selection is exactly the one the documented rule makes from `logits`.
Check check_tie_rule(const IndexerInputs& inputs, std::span<const float> logits,
                     std::int64_t stride, std::span<const std::int32_t> selection);
// "selection": no pool outside a row's set is certainly larger than one inside
// (min over K of s + e >= max outside of s - e), and how many rows the enclosures decide.
struct Certificate {
  Check check;
  std::int64_t rows = 0, decidable_rows = 0;
};
Certificate check_selection(const IndexerInputs& inputs, const LogitBounds& bounds,
                            const StoredPools& pools, std::span<const std::int32_t> selection,
                            bool about_ties, std::span<const std::int64_t> nan_pools = {});
// Logits of every kind a top-k may meet (NaN, infinities, signed zeros, plateaus, a narrow range).
std::vector<float> adversarial_logits(const IndexerInputs& inputs, std::int64_t stride,
                                      std::uint64_t seed);

// --- any operation ---
// "rerun", "lane_order": equal bytes. `what` names the buffer.
Check check_same_bytes(const std::string& name, const std::string& what,
                       std::span<const std::byte> first, std::span<const std::byte> second);
template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
Check check_guards(const std::string& report);
// "traffic": what the kernel declared is what the executor counted.
Check check_traffic(const Traffic& declared, const Traffic& counted);
// Folds checks of one name into one.
Check merge(Check first, const Check& second);

// --- golden: what another implementation answered ---
// "golden": codes and scale of each pool are byte for byte those of the case.
Check check_golden_codes(const IndexerInputs& inputs, const Tensor& golden,
                         const StoredPools& stored, Mask mine);
Check check_golden_queries(const Tensor* codes, const Tensor* scales, const QueryOutput& output);
// "golden": the case's own answers for these steps lie in the reference's enclosures.
Check check_golden_steps(std::span<const reference::Agreement> agreements,
                         std::span<const std::string_view> steps);

// Why enclosures say nothing: every row is zero, or most are wider than their values. Empty: they
// do say something. Rows of `width` elements; `mine` empty: all.
std::string why_vacuous(const reference::Bounded& bounds, std::int64_t width, Mask mine,
                        const char* row_name);

}  // namespace indexpool::verify
