#include "indexpool/verify/stages.hpp"

#include <algorithm>

namespace indexpool::verify {

void launch(StageContext& context, const kernels::OpArgs& args, OpRun& run) {
  const kernels::Kernel& kernel = context.lookup(args);
  kernels::LaunchContext& where = context.target.context();
  if (where.simt != nullptr) where.simt->counted = {};
  kernel.launch(context.target.placed(args), where);
  context.target.synchronize();

  if (run.implementation.empty()) run.implementation = kernel.name;
  if (kernel.accumulation != nullptr) run.accumulation = kernel.accumulation(args);
  run.work = kernel.work(args);
  run.declared += run.work.traffic;
  run.work.traffic = run.declared;
  run.launches += 1;
  run.work.launches = run.launches;
  if (where.simt != nullptr) {
    run.has_counts = true;
    run.counted += where.simt->counted;
  }
  if (context.measure && !run.measurement) {
    constexpr int samples = 30;
    run.measurement =
        context.target.measure([&] { kernel.launch(args, where); }, samples, /*cold_l2=*/true);
  }
}

std::vector<kernels::QueryRow> query_rows(const IndexerInputs& inputs) {
  std::vector<kernels::QueryRow> rows;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      rows.push_back({i, sequence.first_key, static_cast<std::int64_t>(s), 0});
    }
  }
  return rows;
}

std::int64_t logits_stride(const IndexerInputs& inputs, std::uint64_t seed) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : inputs.sequences) longest = std::max(longest, sequence.length);
  const std::int64_t pools = longest / inputs.config.index_kpool;
  return (pools + 3) / 4 * 4 + 4 * (1 + static_cast<std::int64_t>(seed % 3));
}

std::vector<std::int64_t> first_pools(const IndexerInputs& inputs) {
  std::vector<std::int64_t> first{0};
  for (const Sequence& sequence : inputs.sequences) {
    first.push_back(first.back() + sequence.length / inputs.config.index_kpool);
  }
  return first;
}

}  // namespace indexpool::verify
