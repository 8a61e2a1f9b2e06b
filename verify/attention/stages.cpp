// Each operation of a layer as a function from host values to host values, on a target.
#include <cmath>
#include <deque>
#include <span>

#include "indexpool/kernels/attention/token_slots.hpp"
#include "indexpool/verify/attention/attention.hpp"
#include "indexpool/verify/target_memory.hpp"

namespace indexpool::verify::attention {
namespace {

using kernels::AttentionArgs;

// Buffers of one operation, which live as long as the object.
class Placed {
 public:
  explicit Placed(StageContext& context) : context_(context) {}

  const void* put(const char* name, const Tensor& tensor) { return keep(name, tensor).data(); }
  const float* floats(const char* name, const Tensor& tensor) {
    return keep(name, tensor).as<float>();
  }
  const std::int32_t* words(const char* name, const Tensor& tensor) {
    return keep(name, tensor).as<std::int32_t>();
  }
  template <class T>
  TargetBuffer& keep(const char* name, const T& values) {
    return buffers_.emplace_back(upload(context_.target, name, values));
  }
  TargetBuffer& room(const char* name, std::int64_t words) {
    return buffers_.emplace_back(context_.target, name, 4 * words);
  }
  // An operation goes by the name of its last kernel.
  void launch(const AttentionArgs& args, OpRun& run) {
    verify::launch(context_, args, run);
    run.implementation = context_.lookup(args).name;
  }
  std::string guards() { return context_.target.check_guards(); }

 private:
  StageContext& context_;
  std::deque<TargetBuffer> buffers_;
};

std::int32_t narrow(std::int64_t x) { return static_cast<std::int32_t>(x); }

void append(std::vector<float>& to, const TargetBuffer& from) {
  const std::vector<float> values = values_of<float>(from.download());
  to.insert(to.end(), values.begin(), values.end());
}

// Each sequence's state lies at the opposite end of the states, so that a place is not its number.
std::vector<kernels::LinearSequence> sequences_of(const LinearBatch& batch) {
  std::vector<kernels::LinearSequence> records;
  std::int64_t first = 0;
  for (const std::int64_t length : batch.lengths) {
    const auto left = batch.lengths.size() - records.size() - 1;
    records.push_back({first, narrow(length), static_cast<std::int32_t>(left)});
    first += length;
  }
  return records;
}
std::vector<float> reversed_states(std::span<const float> states, std::size_t sequences) {
  const std::size_t size = states.size() / sequences;
  std::vector<float> reversed;
  for (std::size_t s = sequences; s-- > 0;) {
    const auto one = states.subspan(s * size, size);
    reversed.insert(reversed.end(), one.begin(), one.end());
  }
  return reversed;
}

}  // namespace

RowsOutput run_safe_gate(StageContext& context, const SafeGateInputs& in) {
  Placed placed(context);
  kernels::SafeGateArgs args;
  args.features = placed.put("features", in.features);
  args.storage = in.features.dtype();
  args.a_log = placed.floats("steepnesses", in.a_log);
  args.dt_bias = placed.floats("biases", in.dt_bias);
  args.rows = in.features.dim(0);
  args.heads = narrow(in.features.dim(1)), args.key_dim = narrow(in.features.dim(2));
  const TargetBuffer& decays = placed.room("log decays", in.features.size());
  args.log_decay = decays.as<float>();
  RowsOutput output;
  placed.launch(args, output.run);
  append(output.rows, decays);
  output.guards = placed.guards();
  return output;
}

RowsOutput run_sparse(StageContext& context, const SparseAttentionInputs& in) {
  Placed placed(context);
  kernels::SparseAttentionArgs args;
  args.queries = placed.put("queries", in.queries);
  args.keys = placed.put("keys", in.keys);
  args.values = placed.put("values", in.values);
  args.storage = in.queries.dtype();
  args.selection = placed.words("selection", in.selection);
  args.rows = in.queries.dim(0), args.tokens = in.keys.dim(0);
  args.heads = narrow(in.queries.dim(1)), args.key_heads = narrow(in.keys.dim(1));
  args.head_dim = narrow(in.queries.dim(2)), args.value_dim = narrow(in.values.dim(2));
  args.width = narrow(in.selection.dim(1));
  args.scale = in.scale;
  const TargetBuffer& outputs = placed.room("outputs", args.rows * args.heads * args.value_dim);
  args.outputs = outputs.as<float>();
  args.host_selection = in.selection.as<std::int32_t>().data();
  RowsOutput output;
  placed.launch(args, output.run);
  append(output.rows, outputs);
  output.guards = placed.guards();
  return output;
}

RowsOutput run_fusion(StageContext& context, const GateFusionInputs& in) {
  Placed placed(context);
  kernels::GateFusionArgs args;
  args.gate_logits = placed.floats("gate logits", in.gate_logits);
  args.a = placed.floats("branch a", in.a), args.b = placed.floats("branch b", in.b);
  args.rows = in.a.dim(0);
  args.heads = narrow(in.a.dim(1)), args.value_dim = narrow(in.a.dim(2));
  const TargetBuffer& outputs = placed.room("outputs", in.a.size());
  args.outputs = outputs.as<float>();
  RowsOutput output;
  placed.launch(args, output.run);
  append(output.rows, outputs);
  output.guards = placed.guards();
  return output;
}

LinearOutput run_linear(StageContext& context, const LinearBatch& batch, bool chunked) {
  const LinearAttentionInputs& in = batch.rows;
  const std::vector<kernels::LinearSequence> records = sequences_of(batch);
  Placed placed(context);
  kernels::LinearAttentionArgs args;
  args.queries = placed.put("queries", in.queries);
  args.keys = placed.put("keys", in.keys);
  args.values = placed.put("values", in.values);
  args.storage = in.queries.dtype();
  args.log_decay = placed.floats("log decays", in.log_decay);
  args.beta = placed.floats("betas", in.beta);
  args.sequences = placed.keep("sequences", records).as<kernels::LinearSequence>();
  args.host_sequences = records.data();
  args.sequence_count = static_cast<std::int64_t>(records.size());
  args.heads = narrow(in.keys.dim(1));
  args.key_dim = narrow(in.keys.dim(2)), args.value_dim = narrow(in.values.dim(2));
  args.scale = in.scale, args.eps = in.eps;
  const TargetBuffer& states =
      placed.keep("states", reversed_states(batch.states.as<float>(), records.size()));
  const TargetBuffer& outputs = placed.room("outputs", in.values.size());
  args.states = states.as<float>();
  args.outputs = outputs.as<float>();
  LinearOutput output;
  placed.launch(chunked ? AttentionArgs(kernels::LinearChunkArgs{args})
                        : AttentionArgs(kernels::LinearStepArgs{args}),
                output.run);
  append(output.outputs, outputs);
  output.states = reversed_states(values_of<float>(states.download()), records.size());
  output.guards = placed.guards();
  return output;
}

CompositeOutput run_composite(StageContext& context,
                              const std::vector<CompositeAttentionInputs>& sequences) {
  CompositeOutput output;
  for (const CompositeAttentionInputs& in : sequences) {
    Placed placed(context);
    const TargetBuffer& queries = placed.room("queries", in.composites.size());
    const TargetBuffer& keys = placed.room("keys", in.composites.size());
    const TargetBuffer& outputs = placed.room("outputs", in.composites.size());
    kernels::DecompressArgs first;
    first.composites = placed.put("composites", in.composites);
    first.query_weight = placed.put("weights of queries", in.query_weight);
    first.key_weight = placed.put("weights of keys", in.key_weight);
    first.storage = in.composites.dtype();
    first.tokens = in.composites.dim(0);
    first.heads = narrow(in.composites.dim(1)), first.head_dim = narrow(in.composites.dim(2));
    first.queries = queries.as<float>(), first.keys = keys.as<float>();
    placed.launch(first, output.run);
    kernels::CompositeAttentionArgs second;
    second.queries = first.queries, second.keys = first.keys;
    second.values = placed.put("values", in.values);
    second.storage = first.storage, second.tokens = first.tokens;
    second.heads = first.heads, second.head_dim = first.head_dim;
    second.scale = static_cast<float>(1 / std::sqrt(double{1} * second.head_dim));
    second.outputs = outputs.as<float>();
    placed.launch(second, output.run);
    append(output.queries, queries);
    append(output.keys, keys);
    append(output.outputs, outputs);
    if (output.guards.empty()) output.guards = placed.guards();
  }
  return output;
}

FeedbackOutput run_feedback(StageContext& context, const FeedbackInputs& step,
                            const AccessTerms& terms) {
  const kernels::TokenSlots lists = kernels::token_slots(step.tokens.as<std::int32_t>());
  Placed placed(context);
  kernels::CountAttendedArgs first;
  first.attention_mass = placed.floats("masses", step.attention_mass);
  first.slots = step.attention_mass.size();
  first.counts = placed.room("counts", kernels::attended_counts(first.slots)).as<std::int32_t>();
  kernels::AttentionFeedbackArgs second;
  second.attention_mass = first.attention_mass, second.slots = first.slots;
  second.counts = first.counts;
  second.accesses = placed.words("accesses", terms.accesses);
  second.token_slots = placed.keep("slots of tokens", lists.slots).as<std::int32_t>();
  second.first_slot = placed.keep("first slots", lists.first).as<std::int32_t>();
  second.tokens = lists.tokens();
  second.index_kpool = narrow(terms.accesses.dim(1));
  second.host_token_slots = lists.slots.data(), second.host_first_slot = lists.first.data();
  const TargetBuffer& accesses = placed.room("next accesses", second.slots);
  const TargetBuffer& groups = placed.room("groups accessed", second.slots);
  second.next_accesses = accesses.as<std::int32_t>();
  second.groups_accessed = groups.as<std::int32_t>();
  FeedbackOutput output;
  if (first.slots > 0) {
    placed.launch(first, output.run);
    placed.launch(second, output.run);
  }
  output.accesses = values_of<std::int32_t>(accesses.download());
  output.groups_accessed = values_of<std::int32_t>(groups.download());
  output.guards = placed.guards();
  return output;
}

}  // namespace indexpool::verify::attention
