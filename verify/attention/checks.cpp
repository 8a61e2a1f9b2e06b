#include "indexpool/verify/attention/checks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"

namespace indexpool::verify::attention {
namespace {

// Nothing compared is nothing shown.
Check finish(Tally tally) {
  if (tally.compared() == 0) tally.distrust("there was nothing to compare");
  return std::move(tally).finish();
}

std::string place_of(std::size_t i, std::int64_t width) {
  const auto flat = static_cast<std::int64_t>(i);
  return fmt::format("row {}, channel {}", flat / width, flat % width);
}

}  // namespace

Check check_enclosed(std::string name, std::span<const float> found,
                     const reference::Bounded& expected, std::int64_t width, const char* row_name) {
  // At least 8 numbers apart, and further than what a correct kernel may flush to zero: a bound
  // that ends at 0 for that reason is met by 0.
  constexpr double few = 8 * 0x1p-23, flushed = 0x1p-120;
  Tally tally(std::move(name));
  std::int64_t open = 0;
  if (found.size() != expected.value.size()) {
    tally.compare(false, [&] {
      return fmt::format("{} values, expected {}", found.size(), expected.value.size());
    });
    return std::move(tally).finish();
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double value = expected.value[i], low = expected.low[i], high = expected.high[i];
    open += reference::is_open(low, high) ? 1 : 0;
    const bool narrow = high - low <= few * std::abs(value) + flushed;
    const double share = narrow ? 0 : utilisation(double{found[i]}, value, low, high);
    tally.compare(reference::admits(low, high, double{found[i]}), share, [&] {
      return fmt::format("{}: {:.9g}, expected {:.9g} to {:.9g}", place_of(i, width), found[i], low,
                         high);
    });
  }
  const std::string vacuous = why_vacuous(expected, width, {}, row_name);
  if (!vacuous.empty()) tally.distrust(vacuous);
  tally.excuse(open);
  return finish(std::move(tally));
}

reference::Bounded joined(const std::vector<reference::Bounded>& parts) {
  reference::Bounded all;
  for (const reference::Bounded& part : parts) {
    all.value.insert(all.value.end(), part.value.begin(), part.value.end());
    all.low.insert(all.low.end(), part.low.begin(), part.low.end());
    all.high.insert(all.high.end(), part.high.begin(), part.high.end());
  }
  all.shape = {all.size()};
  return all;
}

Check check_decay_range(std::span<const float> log_decay) {
  Tally tally("range");
  std::size_t at_an_end = 0;
  for (std::size_t i = 0; i < log_decay.size(); ++i) {
    const float x = log_decay[i];
    at_an_end += x == 0 || x == safe_gate_floor ? 1 : 0;
    tally.compare(x >= safe_gate_floor && x <= 0, [&] {
      return fmt::format("decay {}: {:.9g}, expected {} to 0", i, x, safe_gate_floor);
    });
  }
  if (at_an_end == log_decay.size()) tally.distrust("every decay is at an end of its range");
  return finish(std::move(tally));
}

Check check_agreement(std::span<const float> by_token, const reference::Bounded& of_token,
                      std::span<const float> in_chunks, const reference::Bounded& of_chunks) {
  Tally tally("agreement");
  for (std::size_t i = 0; i < by_token.size(); ++i) {
    const double low = std::min(of_token.low[i], of_chunks.low[i]),
                 high = std::max(of_token.high[i], of_chunks.high[i]);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const bool overlap = std::max(of_token.low[i], of_chunks.low[i]) <=
                         std::min(of_token.high[i], of_chunks.high[i]);
    const double apart = std::abs(double{by_token[i]} - double{in_chunks[i]}), room = high - low;
    tally.compare(overlap && apart <= room, room > 0 ? apart / room : 0, [&] {
      return overlap ? fmt::format(
                           "value {}: {:.9g} by token, {:.9g} in chunks, expected at most "
                           "{:.3g} apart",
                           i, by_token[i], in_chunks[i], room)
                     : fmt::format("value {}: the enclosures of both ways are apart", i);
    });
  }
  return finish(std::move(tally));
}

Check check_convexity(std::span<const float> outputs, const reference::Bounded& expected,
                      const Tensor& values, std::int64_t channels,
                      const std::vector<Attended>& attended) {
  Tally tally("convexity");
  std::size_t most = 0;
  for (std::size_t row = 0; row < attended.size(); ++row) {
    const auto& tokens = attended[row].tokens;
    most = std::max(most, tokens.size());
    for (std::int64_t c = 0; c < channels; ++c) {
      double low = tokens.empty() ? 0 : HUGE_VAL, high = -low;
      for (const std::int64_t token : tokens) {
        low = std::min(low, values.at(token * channels + c));
        high = std::max(high, values.at(token * channels + c));
      }
      const double error = average_error(tokens.size()) * std::max(std::abs(low), std::abs(high)) +
                           static_cast<double>(tokens.size()) * 0x1p-148;
      const std::size_t i = row * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c);
      if (reference::is_open(expected.low[i], expected.high[i])) continue;
      const double x = outputs[i];
      tally.compare(x >= low - error && x <= high + error, [&] {
        return fmt::format("row {}, channel {}: {:.9g} is outside the values' {:.9g} to {:.9g}",
                           row, c, x, low, high);
      });
    }
  }
  if (most < 2) tally.distrust("no row attends to more than one token: there is nothing to mix");
  return finish(std::move(tally));
}

Check check_softmax_sum(std::span<const float> of_ones, const reference::Bounded& expected,
                        std::int64_t channels, const std::vector<Attended>& attended) {
  Tally tally("softmax_sum");
  std::size_t most = 0;
  for (std::size_t i = 0; i < of_ones.size(); ++i) {
    const std::size_t n = attended[i / static_cast<std::size_t>(channels)].tokens.size();
    most = std::max(most, n);
    if (reference::is_open(expected.low[i], expected.high[i])) continue;
    const double sum = n == 0 ? 0 : 1, off = std::abs(double{of_ones[i]} - sum);
    const double room = n == 0 ? 0 : average_error(n);
    tally.compare(off <= room, room > 0 ? off / room : 0, [&] {
      return fmt::format("{}: weights of {} tokens sum to {:.9g}, expected {}",
                         place_of(i, channels), n, of_ones[i], sum);
    });
  }
  if (most < 2) tally.distrust("no row attends to more than one token: there is nothing to sum");
  return finish(std::move(tally));
}

std::vector<Attended> attended_by(const SparseAttentionInputs& in) {
  const std::int64_t heads = in.queries.dim(1), key_heads = in.keys.dim(1);
  const std::int64_t width = in.selection.dim(1);
  const auto selection = in.selection.as<std::int32_t>();
  std::vector<Attended> rows;
  for (std::int64_t n = 0; n < in.queries.dim(0); ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      Attended row;
      for (std::int64_t w = 0; w < width; ++w) {
        const std::int64_t token = selection[static_cast<std::size_t>(n * width + w)];
        if (token >= 0) row.tokens.push_back(token * key_heads + h * key_heads / heads);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Attended> attended_by(const std::vector<CompositeAttentionInputs>& sequences) {
  std::vector<Attended> rows;
  std::int64_t first = 0;
  for (const CompositeAttentionInputs& in : sequences) {
    const std::int64_t heads = in.composites.dim(1);
    for (std::int64_t t = 0; t < in.composites.dim(0); ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        Attended row;
        for (std::int64_t s = 0; s <= t; ++s) row.tokens.push_back((first + s) * heads + h);
        rows.push_back(std::move(row));
      }
    }
    first += in.composites.dim(0);
  }
  return rows;
}

Check check_equal(std::string name, const std::string& what, std::span<const float> found,
                  std::span<const float> expected) {
  Tally tally(std::move(name));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same = std::isnan(expected[i]) ? std::isnan(found[i])
                                              : std::bit_cast<std::uint32_t>(found[i]) ==
                                                    std::bit_cast<std::uint32_t>(expected[i]);
    tally.compare(same, [&] {
      return fmt::format("{}: value {} is {:.9g}, expected {:.9g}", what, i, found[i], expected[i]);
    });
  }
  return finish(std::move(tally));
}

Check check_counts(const AccessTerms& expected, std::span<const std::int32_t> accesses,
                   std::span<const std::int32_t> groups_accessed, const AccessTerms& before) {
  Tally tally("counts");
  const auto counts = expected.accesses.as<std::int32_t>();
  const auto groups = expected.groups_accessed.as<std::int32_t>();
  const auto old = before.accesses.as<std::int32_t>();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    tally.compare(accesses[i] == counts[i], [&] {
      return fmt::format("slot {}: {} accesses, expected {}", i, accesses[i], counts[i]);
    });
    tally.compare(groups_accessed[i] == groups[i], [&] {
      return fmt::format("slot {}: accessed in {} groups, expected {}", i, groups_accessed[i],
                         groups[i]);
    });
  }
  if (std::equal(counts.begin(), counts.end(), old.begin()))
    tally.distrust("no vector was accessed in this step");
  return finish(std::move(tally));
}

Check check_response(std::span<const float> before, const reference::Bounded& expected_before,
                     std::span<const float> after, const reference::Bounded& expected_after) {
  Tally tally("response");
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool rose = expected_after.low[i] > expected_before.high[i],
               fell = expected_after.high[i] < expected_before.low[i];
    if (!rose && !fell) continue;
    tally.compare(rose ? after[i] > before[i] : after[i] < before[i], [&] {
      return fmt::format("weight {}: {:.9g} after {:.9g}, expected a {} one", i, after[i],
                         before[i], rose ? "larger" : "smaller");
    });
  }
  if (tally.compared() == 0) tally.distrust("no weight certainly differs after the step");
  return finish(std::move(tally));
}

}  // namespace indexpool::verify::attention
