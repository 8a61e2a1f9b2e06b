// From one step's attention to the next step's access counts: counted, so exact.
#include <algorithm>
#include <map>
#include <set>

#include "indexpool/reference/attention/attention.hpp"

namespace indexpool::reference {
namespace {

// Groups that hold an accessed vector of each token.
std::map<std::int32_t, std::set<std::int64_t>> groups_of_tokens(
    std::span<const std::int32_t> tokens, std::span<const std::int32_t> accesses,
    std::int64_t group_size) {
  std::map<std::int32_t, std::set<std::int64_t>> groups;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (accesses[i] > 0) groups[tokens[i]].insert(static_cast<std::int64_t>(i) / group_size);
  }
  return groups;
}

}  // namespace

AccessTerms attention_feedback(const FeedbackInputs& inputs, const AccessTerms& terms) {
  validate(inputs, terms);
  AccessTerms next = terms;
  next.accesses = terms.accesses.clone();
  next.groups_accessed = Tensor(DType::i32, terms.groups_accessed.shape());
  const auto mass = inputs.attention_mass.as<float>();
  const auto tokens = inputs.tokens.as<std::int32_t>();
  const auto accesses = next.accesses.as<std::int32_t>();
  const auto attended = std::count_if(mass.begin(), mass.end(), [](float x) { return x > 0; });
  for (std::size_t i = 0; i < mass.size(); ++i) {
    // Exact: 24 bits times a count below 2^29.
    const bool accessed = static_cast<double>(mass[i]) * static_cast<double>(attended) > 1;
    if (accessed && accesses[i] < most_accesses) ++accesses[i];
  }
  const auto groups = groups_of_tokens(tokens, accesses, terms.accesses.dim(1));
  const auto counts = next.groups_accessed.as<std::int32_t>();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto found = groups.find(tokens[i]);
    counts[i] = found == groups.end() ? 0 : static_cast<std::int32_t>(found->second.size());
  }
  return next;
}

}  // namespace indexpool::reference
