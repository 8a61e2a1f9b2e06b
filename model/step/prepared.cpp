#include "indexpool/model/step/prepared.hpp"

#include <utility>

#include "indexpool/model/step/timing.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

bool depends_on_tokens(const Shape& shape) {
  return std::holds_alternative<Attention>(shape) || std::holds_alternative<IndexerKernels>(shape);
}

}  // namespace

struct PreparedStep::State {
  Serving serving;
  Plan plan;
  Machine machine;
  IndexerWork indexer;
  bool two_streams;
  std::vector<OperationTime> times;    // by operation
  std::vector<std::size_t> by_tokens;  // operations that depend on the context
  Size last{0, 0, 0};                  // `times` hold for its rows
  std::vector<Declared> declared, drafting;
};

PreparedStep::PreparedStep(const Architecture& architecture, const DeviceSpec& device,
                           const Serving& serving, IndexerWork indexer, const StepOptions& options)
    : state_(new State{serving,
                       plan_step(architecture, serving),
                       Machine(device, options),
                       std::move(indexer),
                       options.two_streams,
                       {},
                       {},
                       {0, 0, 0},
                       {},
                       {}}) {
  state_->times.resize(state_->plan.operations.size());
  for (std::size_t i = 0; i < state_->times.size(); ++i) {
    if (depends_on_tokens(state_->plan.operations[i].shape)) state_->by_tokens.push_back(i);
  }
}

PreparedStep::PreparedStep(const PreparedStep& other) : state_(new State(*other.state_)) {}

PreparedStep::~PreparedStep() = default;

CostNumbers PreparedStep::predict(std::int64_t tokens, std::int64_t sequences) {
  State& s = *state_;
  const Size size = size_of(s.serving, tokens, sequences);
  const Size drafted = drafting_size(size);
  const bool drafts = s.serving.request.drafts > 0;
  if (s.plan.has_indexer && s.indexer) {
    s.indexer(on_one_rank(s.serving, size), s.declared);
    if (drafts) s.indexer(on_one_rank(s.serving, drafted), s.drafting);
  }
  const auto time = [&](std::size_t i) {
    const Operation& each = s.plan.operations[i];
    s.times[i] = time_of(each.shape, each.of_sequences ? drafted : size, s.machine,
                         each.of_sequences ? s.drafting : s.declared);
  };
  const bool same_rows =
      size.sequences == s.last.sequences && size.rows_per_sequence == s.last.rows_per_sequence;
  if (same_rows) {
    for (const std::size_t i : s.by_tokens) time(i);
  } else {
    for (std::size_t i = 0; i < s.times.size(); ++i) time(i);
  }
  s.last = size;
  return sum_of(s.plan, s.times, s.two_streams).numbers;
}

}  // namespace indexpool::step
