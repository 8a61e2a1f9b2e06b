// Faults around append and seed_tail: the real kernel runs, with wrong arguments or with part of
// its work taken back.
#include <cstring>
#include <utility>
#include <vector>

#include "indexpool/verify/field/stand_ins.hpp"
#include "indexpool/verify/field/trial.hpp"

namespace indexpool::verify {
namespace {

using kernels::AppendArgs;
using kernels::LaunchContext;
using kernels::OpArgs;
using kernels::SeedTailArgs;

template <class Args>
std::optional<std::string> takes_only(const OpArgs& args) {
  if (std::holds_alternative<Args>(args)) return std::nullopt;
  return "it stands in for one operation";
}

// The two ring entries of each token of the step, with whether the token closes a pool.
struct Entry {
  std::byte* at = nullptr;
  std::vector<std::byte> before;
  bool closes = false;
};
std::vector<Entry> ring_entries(const AppendArgs& args) {
  const std::int64_t row = args.shape.config.index_head_dim * info(args.shape.mode.storage).bytes;
  std::vector<Entry> entries;
  for (std::int64_t j = 0; j < args.job_count; ++j) {
    const kernels::AppendJob& job = args.jobs[j];
    for (std::int64_t t = 0; t < job.tokens; ++t) {
      const std::int64_t index = (job.first_position + t) % args.tail.ring;
      const bool closes = args.slots[job.first_slot + t] >= 0;
      for (const std::int64_t half : {0, 1}) {
        std::byte* at = args.tail.base + job.tail_block * args.tail.block_stride +
                        (half * args.tail.ring + index) * row;
        entries.push_back({at, std::vector<std::byte>(at, at + row), closes});
      }
    }
  }
  return entries;
}

// Runs append, then takes back the tokens it kept: all, or those that close no pool.
void append_without_stash(const OpArgs& any, LaunchContext& context, bool keep_closing) {
  const std::vector<Entry> entries = ring_entries(std::get<AppendArgs>(any));
  executor_kernel("append").launch(any, context);
  for (const Entry& entry : entries) {
    if (keep_closing && entry.closes) continue;
    std::memcpy(entry.at, entry.before.data(), entry.before.size());
  }
}

void stash_follows_pool_slot(const OpArgs& any, LaunchContext& context) {
  append_without_stash(any, context, true);
}
void stash_dropped(const OpArgs& any, LaunchContext& context) {
  append_without_stash(any, context, false);
}

void plan_left_zero(const OpArgs& any, LaunchContext& context) {
  AppendArgs args = std::get<AppendArgs>(any);
  const auto bytes = static_cast<std::int64_t>(sizeof(std::int64_t)) * args.tokens;
  std::byte* zeros = context.simt->memory.allocate("plan of zeros", bytes, std::byte{0});
  args.slots = reinterpret_cast<const std::int64_t*>(zeros);
  executor_kernel("append").launch(args, context);
  context.simt->memory.release(zeros);
}

void tail_stride_dense(const OpArgs& any, LaunchContext& context) {
  SeedTailArgs args = std::get<SeedTailArgs>(any);
  const kernels::Shape& shape = args.shape;
  args.tail.block_stride = std::int64_t{2} * args.tail.ring * shape.config.index_head_dim *
                           info(shape.mode.storage).bytes;
  executor_kernel("seed_tail").launch(args, context);
}

Work append_work(const OpArgs& args) { return executor_kernel("append").work(args); }
Work seed_tail_work(const OpArgs& args) { return executor_kernel("seed_tail").work(args); }

}  // namespace

const kernels::Kernel& cache_stand_in(CacheFault fault) {
  static constexpr auto append = takes_only<AppendArgs>;
  static const kernels::Kernel rows[] = {
      {"stand-in", "stand_in", append, stash_follows_pool_slot, append_work},
      {"stand-in", "stand_in", append, stash_dropped, append_work},
      {"stand-in", "stand_in", takes_only<SeedTailArgs>, tail_stride_dense, seed_tail_work},
      {"stand-in", "stand_in", append, plan_left_zero, append_work}};
  return rows[static_cast<std::size_t>(fault)];
}

}  // namespace indexpool::verify
