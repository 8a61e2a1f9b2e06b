#include "indexpool/model/step/prepared.hpp"

#include <map>
#include <utility>

#include "indexpool/model/step/timing.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

bool depends_on_tokens(const Shape& shape) {
  return std::holds_alternative<Attention>(shape) || std::holds_alternative<IndexerKernels>(shape);
}

// Whether a longer context changes nothing: a decode step whose rows have all they may select, none
// of it twice.
bool is_settled(const Shape& shape, const Size& size) {
  const auto* a = std::get_if<Attention>(&shape);
  if (a == nullptr || size.rows_per_sequence > 1 || size.tokens < a->window) return false;
  return !a->whole ||
         (a->selected > 0 && size.tokens / a->tokens_per_entry / a->context_ranks >= a->selected);
}

}  // namespace

// Rows of a step: sequences, and rows of each.
using Rows = std::pair<std::int64_t, std::int64_t>;
constexpr std::size_t most_kept = 1024;  // row counts, about 3 kB each

struct PreparedStep::State {
  Serving serving;
  Plan plan;
  Machine machine;
  IndexerWork indexer;
  bool two_streams;
  std::vector<std::size_t> by_tokens;  // operations that depend on the context
  // Times by operation. Those that depend on the context are of `tokens`.
  struct Kept {
    std::vector<OperationTime> times;
    std::int64_t tokens = 0;
  };
  std::map<Rows, Kept> kept;
  std::vector<Declared> declared, drafting;

  const std::vector<OperationTime>& times_at(const Size& size) {
    const Rows rows{size.sequences, size.rows_per_sequence};
    const auto [at, fresh] = kept.try_emplace(rows);
    try {
      refresh(at->second, size, fresh);
    } catch (...) {
      kept.erase(at);  // some of its times may be of this size
      throw;
    }
    return at->second.times;
  }

  void refresh(Kept& of_rows, const Size& size, bool fresh) const {
    if (fresh) {
      of_rows.times.resize(plan.operations.size());
      for (std::size_t i = 0; i < of_rows.times.size(); ++i) time(of_rows.times, i, size);
    } else {
      const Size before{size.sequences, size.rows_per_sequence, of_rows.tokens};
      for (const std::size_t i : by_tokens) {
        const Shape& shape = plan.operations[i].shape;
        if (!is_settled(shape, before) || !is_settled(shape, size)) time(of_rows.times, i, size);
      }
    }
    of_rows.tokens = size.tokens;
  }

  void time(std::vector<OperationTime>& times, std::size_t i, const Size& size) const {
    const Operation& each = plan.operations[i];
    times[i] = each.of_sequences
                   ? time_of(each, drafting_size(size), machine, two_streams, drafting)
                   : time_of(each, size, machine, two_streams, declared);
  }
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
                       {},
                       {}}) {
  for (std::size_t i = 0; i < state_->plan.operations.size(); ++i) {
    if (depends_on_tokens(state_->plan.operations[i].shape)) state_->by_tokens.push_back(i);
  }
}

PreparedStep::PreparedStep(const PreparedStep& other) : state_(new State(*other.state_)) {}

PreparedStep& PreparedStep::operator=(const PreparedStep& other) {
  state_ = std::make_unique<State>(*other.state_);
  return *this;
}

PreparedStep::~PreparedStep() = default;

CostNumbers PreparedStep::predict(std::int64_t tokens, std::int64_t sequences) {
  State& s = *state_;
  const Size size = size_of(s.serving, tokens, sequences);
  if (s.plan.has_indexer && s.indexer) {
    s.indexer(on_one_rank(s.serving, size), s.declared);
    if (s.serving.request.drafts > 0) {
      s.indexer(on_one_rank(s.serving, drafting_size(size)), s.drafting);
    }
  }
  if (s.kept.size() >= most_kept) s.kept.clear();
  return sum_of(s.plan, s.times_at(size), s.two_streams).numbers;
}

}  // namespace indexpool::step
