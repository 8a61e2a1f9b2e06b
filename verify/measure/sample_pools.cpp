// Sampled pools, closed by a prefill or by a decode step, and sampled entries of the tail rings.
#include <cstring>

#include <fmt/format.h>

#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/measure/sample.hpp"

namespace indexpool::verify::timing {
namespace {

// Pools as sequences of one pool each, so that the ordinary checks judge them.
class PoolSample {
 public:
  PoolSample(kernels::Target& target, const kernels::Shape& shape, const float* ape,
             std::int64_t pools)
      : target_(target) {
    inputs_.config = shape.config;
    inputs_.mode = shape.mode;
    const std::int64_t dim = shape.config.index_head_dim, kpool = shape.config.index_kpool;
    inputs_.keys = Tensor(shape.mode.storage, {pools * kpool, dim});
    inputs_.gate_scores = Tensor(shape.mode.storage, {pools * kpool, dim});
    inputs_.ape = Tensor(DType::f32, {kpool, dim});
    target.download(inputs_.ape.data(), reinterpret_cast<const std::byte*>(ape),
                    inputs_.ape.bytes().value);
    stored_.head_dim = dim;
    row_bytes_ = dim * info(shape.mode.storage).bytes;
  }

  std::int64_t row_bytes() const { return row_bytes_; }

  // The next `tokens` rows of the pool being filled.
  void add_tokens(const std::byte* keys, const std::byte* gate_scores, std::int64_t tokens) {
    target_.download(inputs_.keys.data() + rows_ * row_bytes_, keys, tokens * row_bytes_);
    target_.download(inputs_.gate_scores.data() + rows_ * row_bytes_, gate_scores,
                     tokens * row_bytes_);
    rows_ += tokens;
  }
  // Ends the pool: what the kernel stored in `slot`.
  void close(const kernels::PagedCache& cache, std::int64_t slot) {
    const kernels::Shape shape{inputs_.config, inputs_.mode};
    const kernels::PageLayout layout = kernels::page_layout(shape, cache.states_per_page);
    const std::int64_t state = slot % cache.states_per_page;
    const std::byte* const page = cache.pages + slot / cache.states_per_page * cache.page_stride;
    const auto codes = downloaded(target_, page + state * layout.code_bytes(), layout.code_bytes());
    for (const double code : decode(inputs_.mode.cache, codes)) stored_.codes.push_back(code);
    double scale = 1;
    if (layout.scales) {
      const auto* const at = reinterpret_cast<const float*>(page + layout.scale_offset());
      scale = downloaded(target_, at + state, 1)[0];
    }
    stored_.scales.push_back(scale);
    stored_.raw.push_back(codes);
    inputs_.sequences.push_back(
        {0, inputs_.config.index_kpool, stored_.pools * inputs_.config.index_kpool});
    ++stored_.pools;
  }
  std::vector<Check> checks() const {
    const std::vector<char> all(static_cast<std::size_t>(stored_.pools), 1);
    return pool_value_checks(inputs_, stored_, reference::pool(inputs_), all);
  }

 private:
  kernels::Target& target_;
  IndexerInputs inputs_;
  StoredPools stored_;
  std::int64_t row_bytes_ = 0, rows_ = 0;
};

const std::byte* row_at(const void* rows, std::int64_t row, std::int64_t row_bytes) {
  return static_cast<const std::byte*>(rows) + row * row_bytes;
}

// Where a ring keeps a position: half 0 keys, 1 gate scores.
const std::byte* ring_entry(const kernels::TailRing& tail, std::int64_t block, std::int64_t half,
                            std::int64_t position, std::int64_t row_bytes) {
  return tail.base + block * tail.block_stride +
         (half * tail.ring + position % tail.ring) * row_bytes;
}

// "tail": a ring's entry holds the bytes of a row.
template <class Args>
void compare_entry(kernels::Target& target, const Args& args, std::int64_t row, std::int64_t block,
                   std::int64_t position, Tally& tally) {
  const std::int64_t bytes = args.shape.config.index_head_dim * info(args.shape.mode.storage).bytes;
  for (const std::int64_t half : {0, 1}) {
    const auto expected =
        downloaded(target, row_at(half == 0 ? args.keys : args.gate_scores, row, bytes), bytes);
    const auto found =
        downloaded(target, ring_entry(args.tail, block, half, position, bytes), bytes);
    tally.compare(expected == found, [&] {
      return fmt::format("ring {}, {}, position {}: not the bytes of row {}", block,
                         half == 0 ? "keys" : "gate scores", position, row);
    });
  }
}

}  // namespace

std::vector<Check> check_pools(kernels::Target& target, const Placed& placed,
                               const kernels::PoolArgs& args, const SampleOptions& options) {
  const std::int64_t kpool = args.shape.config.index_kpool;
  const std::int64_t pool_bytes =
      kpool * args.shape.config.index_head_dim * info(args.shape.mode.storage).bytes;
  const auto jobs = sampled(args.job_count, pool_bytes, options.samples, options.seed);
  PoolSample sample(target, args.shape, args.ape, std::ssize(jobs));
  for (const std::int64_t index : jobs) {
    const kernels::PoolJob& job = placed.host.pool_jobs[static_cast<std::size_t>(index)];
    const std::int64_t first = job.last_row - kpool + 1;
    sample.add_tokens(row_at(args.keys, first, sample.row_bytes()),
                      row_at(args.gate_scores, first, sample.row_bytes()), kpool);
    sample.close(args.cache, job.slot);
  }
  return sample.checks();
}

std::vector<Check> check_appended(kernels::Target& target, const Placed& placed,
                                  const kernels::AppendArgs& args, const SampleOptions& options) {
  const std::int64_t kpool = args.shape.config.index_kpool;
  const auto& jobs = placed.host.append.jobs;
  const auto& slots = placed.host.append.slots;
  Tally tails("tail");
  std::vector<std::size_t> closing;
  for (const std::int64_t index : sampled(args.job_count, 1, options.samples, options.seed)) {
    const kernels::AppendJob& job = jobs[static_cast<std::size_t>(index)];
    compare_entry(target, args, job.first_row, job.tail_block, job.first_position, tails);
  }
  for (const std::int64_t index :
       sampled((args.job_count + kpool - 1) / kpool, 1, options.samples, options.seed)) {
    closing.push_back(static_cast<std::size_t>(index * kpool));  // see HostArguments
  }
  PoolSample sample(target, args.shape, args.ape, std::ssize(closing));
  for (const std::size_t index : closing) {
    const kernels::AppendJob& job = jobs[index];
    for (std::int64_t position = job.first_position - kpool + 1; position <= job.first_position;
         ++position) {
      const auto entry = [&](std::int64_t half) {
        return ring_entry(args.tail, job.tail_block, half, position, sample.row_bytes());
      };
      sample.add_tokens(entry(0), entry(1), 1);
    }
    sample.close(args.cache, slots[index]);
  }
  std::vector<Check> checks = sample.checks();
  checks.push_back(std::move(tails).finish());
  return checks;
}

std::vector<Check> check_tails(kernels::Target& target, const Placed& placed,
                               const kernels::SeedTailArgs& args, const SampleOptions& options) {
  Tally tails("tail");
  for (const std::int64_t index : sampled(args.job_count, 1, options.samples, options.seed)) {
    const kernels::TailJob& job = placed.host.tail_jobs[static_cast<std::size_t>(index)];
    compare_entry(target, args, job.row, job.tail_block, job.ring_index, tails);
  }
  return {std::move(tails).finish()};
}

}  // namespace indexpool::verify::timing
