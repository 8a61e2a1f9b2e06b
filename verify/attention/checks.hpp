// The checks of a layer's operations. Each looks at one property and returns what it found; what
// has nothing to say is untrusted, not passed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "indexpool/model/attention.hpp"
#include "indexpool/reference/attention/attention.hpp"
#include "indexpool/verify/checks/checks.hpp"

namespace indexpool::verify::attention {

// `name`: each of `found` lies in its enclosure; rows of `width` elements. A bound that spans a few
// binary32 numbers gets no utilisation: how far across it says nothing.
Check check_enclosed(std::string name, std::span<const float> found,
                     const reference::Bounded& expected, std::int64_t width, const char* row_name);
// Enclosures of parts, back to back.
reference::Bounded joined(const std::vector<reference::Bounded>& parts);

// "range": decays of the safe gate stay between its floor and 0.
Check check_decay_range(std::span<const float> log_decay);
// "agreement": two ways to one number. Both enclosures hold it, so they overlap, and answers are no
// further apart than both reach.
Check check_agreement(std::span<const float> by_token, const reference::Bounded& of_token,
                      std::span<const float> in_chunks, const reference::Bounded& of_chunks);

// A distribution over the values of `tokens` tokens: [tokens] offsets into a tensor of values.
struct Attended {
  std::vector<std::int64_t> tokens;
};
// "convexity": each channel lies between the smallest and the largest value attended to.
// Rows of V channels: row i attends to rows `attended[i]` of `values` ([., V]). Here and in
// "softmax_sum" what `expected` leaves open (binary32 may overflow) is not judged.
Check check_convexity(std::span<const float> outputs, const reference::Bounded& expected,
                      const Tensor& values, std::int64_t channels,
                      const std::vector<Attended>& attended);
// "softmax_sum": where every value is 1 the output is 1, and 0 where nothing is attended to.
Check check_softmax_sum(std::span<const float> of_ones, const reference::Bounded& expected,
                        std::int64_t channels, const std::vector<Attended>& attended);
// Rounding of an average of n values of magnitude 1: numerator and denominator are sums of n terms
// with the same exponentials, rescaled at most every 32 terms.
inline double average_error(std::size_t n) { return (4 * static_cast<double>(n) + 16) * 0x1p-24; }
std::vector<Attended> attended_by(const SparseAttentionInputs& inputs);
std::vector<Attended> attended_by(const std::vector<CompositeAttentionInputs>& sequences);

// `name`: equal bit for bit, NaN aside: which of them comes out is the machine's choice.
Check check_equal(std::string name, const std::string& what, std::span<const float> found,
                  std::span<const float> expected);

// "counts": access counts and groups after a step, exactly.
Check check_counts(const AccessTerms& expected, std::span<const std::int32_t> accesses,
                   std::span<const std::int32_t> groups_accessed, const AccessTerms& before);
// "response": where the enclosures of the weights before and after a step are apart, the stored
// weights moved the same way.
Check check_response(std::span<const float> before, const reference::Bounded& expected_before,
                     std::span<const float> after, const reference::Bounded& expected_after);

}  // namespace indexpool::verify::attention
