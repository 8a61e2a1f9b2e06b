#include "indexpool/verify/faults/clean.hpp"

#include <algorithm>

#include "indexpool/verify/faults/crc32c.hpp"
#include "indexpool/verify/faults/seal.hpp"
#include "indexpool/verify/faults/subject.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::verify::faults {
namespace {

constexpr std::int64_t pools_per_launch = 8192;

// Fills whose pools stay finite. One leaves binary32 on purpose and stores NaN: an alarm about that
// is none about a fault, and none that is false.
std::vector<std::string> finite_fills() {
  std::vector<std::string> names = fill_names();
  std::erase(names, "near_overflow");
  return names;
}

void add(CleanRuns& clean, Alarms alarms) {
  ++clean.runs;
  for (int layer = 0; layer < layer_count; ++layer) {
    clean.alarms[layer] += (alarms & layers()[layer].bit) != 0 ? 1 : 0;
  }
}

// The pools of one page, one after the other, as they came.
void read_growing(const PageShape& shape, const LinearLink& link, const StoredPage& page,
                  std::span<const Alarms> source, CleanRuns& clean) {
  PageSeal seal;
  for (std::size_t i = 0; i < page.checksums.size(); ++i) {
    const auto state = static_cast<std::int64_t>(i);
    const Bytes codes = codes_of(shape, page.bytes, state);
    const Bytes scale = scale_of(shape, page.bytes, state);
    Alarms alarms = source[i] | check_pool(shape, link, codes, scale, page.checksums[i]);
    append(seal, shape, page.bytes, page.checksums[i]);
    alarms |= check_page(shape, page.bytes, seal);
    clean.linear_utilisation =
        std::max(clean.linear_utilisation, link.utilisation(codes, scale, page.checksums[i]));
    add(clean, alarms);
  }
}

std::vector<std::uint32_t> source_sums(const IndexerInputs& inputs, std::int64_t pools) {
  std::vector<std::uint32_t> sums;
  for (std::int64_t pool = 0; pool < pools; ++pool) {
    std::uint32_t crc = 0;
    for (const Tensor* rows : {&inputs.keys, &inputs.gate_scores}) {
      const std::size_t bytes = rows->raw().size() / static_cast<std::size_t>(rows->dim(0)) *
                                static_cast<std::size_t>(index_kpool);
      crc = crc32c(rows->raw().subspan(static_cast<std::size_t>(pool) * bytes, bytes), crc);
    }
    sums.push_back(crc);
  }
  return sums;
}

// `pools` pools of one sequence: prefill in chunks, the last tokens by decode with drafts.
void run_fill(const CampaignOptions& options, const PageShape& shape, const LinearLink& link,
              const std::string& fill, std::int64_t pools, std::uint64_t seed, CleanRuns& clean) {
  const std::int64_t tokens = pools * index_kpool;
  const std::int64_t decoded = std::min<std::int64_t>(tokens, 48);
  const IndexerInputs inputs = draw_inputs(options.mode, fill, {tokens}, seed);
  const std::vector<std::uint32_t> before = source_sums(inputs, pools);
  const CacheRun run = run_kernels(inputs, {tokens - decoded, 4099, 2}, seed);
  const std::vector<std::uint32_t> after = source_sums(inputs, pools);
  std::vector<Alarms> source;
  for (std::size_t i = 0; i < before.size(); ++i) {
    source.push_back(before[i] == after[i] ? 0u : static_cast<Alarms>(layer_source));
  }
  std::size_t first = 0;
  for (const StoredPage& page : pages_of(inputs, run, shape)) {
    read_growing(shape, link, page, std::span(source).subspan(first), clean);
    first += page.checksums.size();
  }
}

}  // namespace

CleanRuns run_clean(const CampaignOptions& options, const PageShape& shape) {
  const LinearLink link(shape);
  CleanRuns clean;
  const std::vector<std::string> names = finite_fills();
  const auto count = static_cast<std::int64_t>(names.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string& fill = names[static_cast<std::size_t>(i)];
    // The runs dealt to the fills evenly.
    std::int64_t left = options.clean_runs * (i + 1) / count - options.clean_runs * i / count;
    for (std::uint64_t part = 0; left > 0; ++part) {
      const std::int64_t pools = std::min(left, pools_per_launch);
      if (options.progress) options.progress("clean runs, fill " + fill);
      run_fill(options, shape, link, fill, pools, options.seed + 1000 * part, clean);
      left -= pools;
    }
  }
  return clean;
}

}  // namespace indexpool::verify::faults
