// The launches of the backward pass, from host values to host values.
#include <deque>

#include "indexpool/kernels/backward/plan.hpp"
#include "indexpool/verify/policy/backward.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::policy {
namespace {

class Backward {
 public:
  Backward(StageContext& context, const PoolingInputs& inputs, bool clip)
      : context_(context), in_(inputs), clip_(clip) {}

  BackwardOutput run(const std::vector<float>& pool_weights,
                     const std::vector<float>& grad_pooled) {
    place(pool_weights, grad_pooled);
    to_weights();
    if (std::holds_alternative<RoleMatrix>(in_.weights)) through_roles();
    if (in_.per_channel()) through_channels();
    if (const auto* gate = std::get_if<GateOperands>(&in_.weights)) through_gate(*gate);
    if (kernels::weight_terms(in_) > 0) through_terms();
    out_.guards = context_.target.check_guards();
    return std::move(out_);
  }

 private:
  template <class T>
  TargetBuffer& put(const char* name, const T& values) {
    return buffers_.emplace_back(upload(context_.target, name, values));
  }
  float* room(const char* name, std::int64_t floats) {
    return buffers_.emplace_back(context_.target, name, floats * 4).as<float>();
  }
  std::vector<float> download(const float* from, std::int64_t count) const {
    std::vector<float> values(static_cast<std::size_t>(count));
    if (count > 0)
      context_.target.download(values.data(), reinterpret_cast<const std::byte*>(from), count * 4);
    return values;
  }
  void run_one(const kernels::OpArgs& args) {
    if (in_.group_count() > 0) launch(context_, args, out_.run);
  }

  std::int64_t dim() const { return in_.head_dim; }
  std::int64_t slots() const { return in_.group_count() * in_.index_kpool; }
  std::int64_t slot_weights() const { return slots() * (in_.per_channel() ? dim() : 1); }

  void place(const std::vector<float>& pool_weights, const std::vector<float>& grad_pooled) {
    kernels::PlacedPooling& forward = at_.forward;
    forward.vectors = put("vectors", in_.vectors).data();
    forward.groups = put("groups", in_.groups).as<VectorGroup>();
    forward.pool_weights = put("pool weights", pool_weights).as<float>();
    at_.grad_pooled = put("gradients of pooled", grad_pooled).as<float>();
    at_.held_vectors = room("gradients of vectors", slots() * dim());
    at_.slot_weights = room("gradients of weights", slot_weights());
    if (in_.norm_rope.norm_weight.empty()) return;
    forward.norm_weight = put("norm weight", in_.norm_rope.norm_weight).as<float>();
    if (in_.norm_rope.rope_dims > 0) forward.rope = put("rope", in_.norm_rope.rope).as<float>();
    at_.norm_rows = room("gradients of norm weight, by group", in_.group_count() * dim());
  }

  // Rows of `values` that belong to one of `sums`, added up; [sums, width].
  float* sum(const float* values, std::int64_t width, const std::vector<std::int32_t>& sum_of_row,
             std::int64_t sums, bool clip = false) {
    const auto levels = kernels::sum_levels(sum_of_row, sums, width);
    float* result = nullptr;
    for (const kernels::SumLevel& level : levels) {
      result = room("sums", level.segments() * width);
      kernels::SumRowsArgs args = kernels::sum_launch(
          level, put("rows", level.rows).as<std::int32_t>(),
          put("segments", level.first).as<std::int64_t>(), width, values, result);
      args.clip = clip && &level == &levels.back();
      launch(context_, kernels::BackwardArgs(args), out_.run);
      values = result;
    }
    return result;
  }
  std::vector<float> summed(const float* values, std::int64_t width, std::int64_t rows,
                            std::int64_t sums) {
    std::vector<std::int32_t> sum_of_row;
    for (std::int64_t j = 0; j < rows; ++j)
      sum_of_row.push_back(static_cast<std::int32_t>(j % sums));
    return download(sum(values, width, sum_of_row, sums), sums * width);
  }

  void to_weights() {
    run_one(kernels::to_weights_launch(in_, at_, clip_));
    out_.held_vectors = download(at_.held_vectors, slots() * dim());
    out_.slot_weights = download(at_.slot_weights, slot_weights());
    if (at_.norm_rows != nullptr) {
      out_.norm_rows = download(at_.norm_rows, in_.group_count() * dim());
      out_.norm_weight = summed(at_.norm_rows, dim(), in_.group_count(), 1);
    }
    at_.grad_weights = at_.slot_weights;
    std::int64_t weights = slot_weights();
    if (kernels::shares_weights(in_)) {
      std::vector<std::int32_t> sets;
      for (const VectorGroup& group : in_.groups) sets.push_back(group.weight_set);
      weights = weight_sets(in_) * in_.index_kpool;
      at_.grad_weights = sum(at_.slot_weights, in_.index_kpool, sets, weight_sets(in_), clip_);
    }
    out_.pool_weights = download(at_.grad_weights, weights);
  }
  void through_roles() {
    const std::int64_t elements = weight_sets(in_) * in_.index_kpool;
    at_.grad_operand = room("gradients of pool matrix", elements);
    for (const kernels::OpArgs& args : kernels::through_weights_launches(in_, at_))
      launch(context_, args, out_.run);
    out_.pool_matrix = download(at_.grad_operand, elements);
  }
  void through_channels() {
    at_.grad_operand = room("gradients of gate scores", slots() * dim());
    for (const kernels::OpArgs& args : kernels::through_weights_launches(in_, at_)) run_one(args);
    out_.gate_scores = download(at_.grad_operand, slots() * dim());
    out_.position_bias = summed(at_.grad_operand, in_.index_kpool * dim(), in_.group_count(), 1);
  }
  void through_gate(const GateOperands& gate) {
    const std::int64_t tokens = gate.hidden_states.dim(0), hidden = gate.hidden_states.dim(1);
    const std::int64_t blocks = (tokens + 15) / 16, groups = in_.group_count();
    at_.forward.hidden_states = put("hidden states", gate.hidden_states).data();
    at_.forward.gate_weight = put("gate weight", gate.gate_weight).data();
    at_.grad_vectors = room("gradients of vectors, all", slots() * dim());
    at_.gate_rows = room("gradients of gate, by group", groups * dim());
    at_.grad_hidden_gates = room("gradients of hidden gates", groups);
    at_.grad_hidden_states = room("gradients of hidden states", tokens * hidden);
    at_.hidden_gate_rows =
        room("gradients of gate, by block of tokens", blocks * in_.heads * hidden);
    for (const kernels::OpArgs& args : kernels::through_weights_launches(in_, at_)) run_one(args);
    out_.vectors = download(at_.grad_vectors, slots() * dim());
    out_.hidden_states = download(at_.grad_hidden_states, tokens * hidden);
    out_.gate_vectors = summed(at_.gate_rows, dim(), groups, in_.heads);
    out_.gate_hidden = summed(at_.hidden_gate_rows, hidden, blocks * in_.heads, in_.heads);
    out_.gate_bias = summed(at_.grad_hidden_gates, in_.heads, tokens, 1);
  }
  void place_terms(const AdditiveTerms& terms) {
    at_.forward.queries = put("queries", terms.queries).data();
    at_.forward.distances = put("distances", terms.distances).as<float>();
    at_.forward.ages = put("ages", terms.ages).as<float>();
  }
  void place_terms(const AccessTerms& terms) {
    at_.forward.queries = put("queries", terms.queries).data();
    at_.forward.accesses = put("accesses", terms.accesses).as<std::int32_t>();
    at_.forward.groups_accessed = put("groups accessed", terms.groups_accessed).as<std::int32_t>();
    at_.forward.position_terms = put("position terms", terms.position_terms).as<float>();
    at_.position_rows = room("gradients of position terms, by group", slots());
  }
  void through_terms() {
    const std::int64_t groups = in_.group_count(), m = in_.index_kpool;
    const std::int64_t terms = kernels::weight_terms(in_), rows = kernels::weight_term_rows(in_);
    if (const auto* of = std::get_if<AdditiveTerms>(&in_.weights)) place_terms(*of);
    if (const auto* of = std::get_if<AccessTerms>(&in_.weights)) place_terms(*of);
    at_.grad_vectors = room("gradients of vectors, all", slots() * dim());
    at_.grad_queries = room("gradients of queries", groups * dim());
    at_.cosines = room("cosines", slots());
    at_.term_rows = room("gradients of terms, by warp", rows * terms);
    for (const kernels::OpArgs& args : kernels::through_weights_launches(in_, at_)) run_one(args);
    out_.vectors = download(at_.grad_vectors, slots() * dim());
    out_.queries = download(at_.grad_queries, groups * dim());
    out_.cosines = download(at_.cosines, slots());
    out_.term_rows = download(at_.term_rows, rows * terms);
    out_.terms = summed(at_.term_rows, terms, rows, 1);
    if (at_.position_rows == nullptr) return;
    out_.position_rows = download(at_.position_rows, slots());
    out_.position_terms = summed(at_.position_rows, m, groups, 1);
  }

  StageContext& context_;
  const PoolingInputs& in_;
  bool clip_;
  std::deque<TargetBuffer> buffers_;
  kernels::PlacedBackward at_;
  BackwardOutput out_;
};

}  // namespace

BackwardOutput run_backward(StageContext& context, const PoolingInputs& inputs,
                            const std::vector<float>& pool_weights,
                            const std::vector<float>& grad_pooled, bool clip) {
  return Backward(context, inputs, clip).run(pool_weights, grad_pooled);
}

}  // namespace indexpool::verify::policy
