#include "indexpool/verify/timeline.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "indexpool/verify/random.hpp"

namespace indexpool::verify {
namespace {

std::int64_t prefill_tokens(const Sequence& sequence, const Schedule& schedule,
                            std::int64_t case_prefill) {
  if (schedule.prefill_tokens >= 0) return std::min(schedule.prefill_tokens, sequence.length);
  if (case_prefill <= 0) return sequence.length;
  return std::clamp<std::int64_t>(case_prefill - sequence.first_key, 0, sequence.length);
}

// Appends a part's rows to the staged order, after a gap that nothing may read.
void stage(Part& part, const Sequence& sequence, std::int64_t gap, Timeline& timeline) {
  timeline.source.insert(timeline.source.end(), static_cast<std::size_t>(gap), never_read);
  part.first_row = static_cast<std::int64_t>(timeline.source.size());
  for (std::int64_t i = 0; i < part.offered; ++i) {
    timeline.source.push_back(i < part.kept ? sequence.first_row + part.start + i : rejected_draft);
  }
  auto& reached = timeline.positions[static_cast<std::size_t>(part.sequence)];
  reached = std::max(reached, part.start + part.offered);
}

}  // namespace

Timeline plan_timeline(const IndexerInputs& inputs, const Schedule& schedule,
                       std::int64_t case_prefill, std::uint64_t seed) {
  const auto sequences = static_cast<std::int64_t>(inputs.sequences.size());
  const std::int64_t gap = std::max<std::int64_t>(inputs.config.index_kpool - 1, 1);
  const Random random(seed, 200);
  Timeline timeline;
  timeline.positions.assign(static_cast<std::size_t>(sequences), 0);
  std::vector<std::int64_t> done(static_cast<std::size_t>(sequences), 0);
  std::int64_t drawn = 0;
  for (;;) {
    Round round;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const Sequence& sequence = inputs.sequences[static_cast<std::size_t>(s)];
      std::int64_t& position = done[static_cast<std::size_t>(s)];
      const std::int64_t prefill = prefill_tokens(sequence, schedule, case_prefill);
      if (position >= sequence.length) continue;
      Part part{s, position, 0, 0, 0};
      const bool decode = position >= prefill;
      if (decode) {
        part.offered = 1 + schedule.drafts;
        part.kept =
            std::min(1 + random.integer(drawn++, 0, schedule.drafts), sequence.length - position);
      } else {
        const std::int64_t left = prefill - position;
        part.offered = part.kept =
            schedule.prefill_chunk > 0 ? std::min(schedule.prefill_chunk, left) : left;
      }
      stage(part, sequence, gap, timeline);
      (decode ? round.decode : round.prefill).push_back(part);
      (decode ? timeline.decodes : timeline.prefills) = true;
      position += part.kept;
    }
    if (round.prefill.empty() && round.decode.empty()) return timeline;
    timeline.rounds.push_back(std::move(round));
  }
}

Tensor stage_rows(const Tensor& rows, const Timeline& timeline, std::uint64_t seed,
                  std::uint64_t stream) {
  const auto count = static_cast<std::int64_t>(timeline.source.size());
  const std::int64_t dim = rows.shape().at(1);
  const std::size_t row_bytes =
      static_cast<std::size_t>(dim) * static_cast<std::size_t>(info(rows.dtype()).bytes);
  Tensor staged(rows.dtype(), {count, dim});
  const Random random(seed, stream);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t source = timeline.source[static_cast<std::size_t>(row)];
    std::byte* to = staged.data() + static_cast<std::size_t>(row) * row_bytes;
    if (source >= 0) {
      std::memcpy(to, rows.data() + static_cast<std::size_t>(source) * row_bytes, row_bytes);
      continue;
    }
    for (std::int64_t channel = 0; channel < dim; ++channel) {
      const std::int64_t i = row * dim + channel;
      staged.set(i, source == rejected_draft ? 16 + 8 * random.normal(i)
                                             : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return staged;
}

}  // namespace indexpool::verify
