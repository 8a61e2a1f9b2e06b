#include "attention_bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

#include "indexpool/kernels/attention/token_slots.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::byte poison{0xff};  // NaN as f32

class Bench {
 public:
  explicit Bench(Target& target) : target_(target) {}
  ~Bench() {
    for (std::byte* buffer : buffers_) target_.release(buffer);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::byte* upload(const char* name, const void* from, std::int64_t bytes) {
    std::byte* const to = allocate(name, bytes);
    target_.upload(to, from, bytes);
    return to;
  }
  const std::byte* upload(const char* name, const Tensor& tensor) {
    return upload(name, tensor.data(), tensor.bytes().value);
  }
  const float* floats(const char* name, const Tensor& tensor) {
    return reinterpret_cast<const float*>(upload(name, tensor));
  }
  float* outputs(std::int64_t count) {
    return reinterpret_cast<float*>(allocate("outputs", 4 * count));
  }
  template <class T>
  std::vector<T> download(const T* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    target_.download(values.data(), reinterpret_cast<const std::byte*>(from), 4 * count);
    return values;
  }
  void launch(const AttentionArgs& attention) {
    const OpArgs args = attention;
    const Kernel& kernel = find_kernel(target_.name(), args);
    sim::simt::Session* const session = target_.context().simt;
    if (session != nullptr) session->counted = {};
    kernel.launch(args, target_.context());
    target_.synchronize();
    const Traffic declared = kernel.work(args).traffic;
    if (session != nullptr && session->options.count && !(declared == session->counted))
      throw std::runtime_error(std::string(kernel.name) + ": declared " + text(declared) +
                               ", counted " + text(session->counted));
    const std::string damage = target_.check_guards();
    if (!damage.empty()) throw std::runtime_error(damage);
  }

 private:
  static std::string text(const Traffic& t) {
    std::string result;
    for (const std::int64_t x : {t.global_load.value, t.load_sectors, t.global_store.value,
                                 t.store_sectors, t.shared_load.value, t.shared_store.value,
                                 t.shared_wavefronts, t.block_barriers, t.shuffles}) {
      result += std::to_string(x);
      result += ' ';
    }
    return result;
  }
  std::byte* allocate(const char* name, std::int64_t bytes) {
    buffers_.push_back(target_.allocate(name, bytes, poison));
    return buffers_.back();
  }

  Target& target_;
  std::vector<std::byte*> buffers_;
};

void append(std::vector<std::byte>& bytes, const Tensor& tensor) {
  const auto raw = tensor.raw();
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

}  // namespace

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}
bool LinearRun::operator==(const LinearRun& other) const {
  return std::equal(outputs.begin(), outputs.end(), other.outputs.begin(), other.outputs.end(),
                    same_bytes) &&
         std::equal(states.begin(), states.end(), other.states.begin(), other.states.end(),
                    same_bytes);
}

namespace {

// Sequences back to back.
struct PackedLinear {
  std::vector<LinearSequence> records;
  std::vector<std::byte> queries, keys, values, log_decay, beta, states;
  std::int64_t rows = 0;

  explicit PackedLinear(const std::vector<LinearAttentionInputs>& sequences) {
    for (const auto& in : sequences) {
      const auto state = static_cast<std::int32_t>(sequences.size() - records.size() - 1);
      records.push_back({rows, static_cast<std::int32_t>(in.keys.dim(0)), state});
      rows += in.keys.dim(0);
      append(queries, in.queries), append(keys, in.keys), append(values, in.values);
      append(log_decay, in.log_decay), append(beta, in.beta);
    }
    for (auto in = sequences.rbegin(); in != sequences.rend(); ++in) append(states, in->state);
  }
};

LinearAttentionArgs uploaded(const PackedLinear& packed, Bench& bench) {
  const auto up = [&](const char* name, const std::vector<std::byte>& bytes) {
    return bench.upload(name, bytes.data(), std::ssize(bytes));
  };
  LinearAttentionArgs args;
  args.queries = up("queries", packed.queries);
  args.keys = up("keys", packed.keys);
  args.values = up("values", packed.values);
  args.log_decay = reinterpret_cast<const float*>(up("log decays", packed.log_decay));
  args.beta = reinterpret_cast<const float*>(up("betas", packed.beta));
  args.sequences = reinterpret_cast<const LinearSequence*>(
      bench.upload("sequences", packed.records.data(),
                   std::ssize(packed.records) * std::int64_t{sizeof(LinearSequence)}));
  args.sequence_count = std::ssize(packed.records);
  args.states = reinterpret_cast<float*>(up("states", packed.states));
  args.host_sequences = packed.records.data();
  return args;
}

}  // namespace

LinearRun run_linear(const std::vector<LinearAttentionInputs>& sequences, bool chunked,
                     Target& target) {
  const LinearAttentionInputs& first = sequences.front();
  const std::int64_t heads = first.keys.dim(1), keys = first.keys.dim(2);
  const std::int64_t values = first.values.dim(2), state_size = heads * keys * values;
  const PackedLinear packed(sequences);
  Bench bench(target);
  LinearAttentionArgs args = uploaded(packed, bench);
  args.storage = first.queries.dtype();
  args.heads = static_cast<std::int32_t>(heads);
  args.key_dim = static_cast<std::int32_t>(keys);
  args.value_dim = static_cast<std::int32_t>(values);
  args.scale = first.scale, args.eps = first.eps;
  args.outputs = bench.outputs(packed.rows * heads * values);
  bench.launch(chunked ? AttentionArgs(LinearChunkArgs{args})
                       : AttentionArgs(LinearStepArgs{args}));
  LinearRun run;
  for (const LinearSequence& record : packed.records) {
    run.outputs.push_back(bench.download(args.outputs + record.first_row * heads * values,
                                         record.tokens * heads * values));
    run.states.push_back(bench.download(args.states + record.state * state_size, state_size));
  }
  return run;
}

std::vector<float> run_sparse(const SparseAttentionInputs& in, Target& target) {
  Bench bench(target);
  SparseAttentionArgs args;
  args.queries = bench.upload("queries", in.queries);
  args.keys = bench.upload("keys", in.keys);
  args.values = bench.upload("values", in.values);
  args.storage = in.queries.dtype();
  args.selection = reinterpret_cast<const std::int32_t*>(bench.upload("selection", in.selection));
  args.rows = in.queries.dim(0), args.tokens = in.keys.dim(0);
  args.heads = static_cast<std::int32_t>(in.queries.dim(1));
  args.key_heads = static_cast<std::int32_t>(in.keys.dim(1));
  args.head_dim = static_cast<std::int32_t>(in.queries.dim(2));
  args.value_dim = static_cast<std::int32_t>(in.values.dim(2));
  args.width = static_cast<std::int32_t>(in.selection.dim(1));
  args.scale = in.scale;
  const std::int64_t count = args.rows * args.heads * args.value_dim;
  args.outputs = bench.outputs(count);
  args.host_selection = in.selection.as<std::int32_t>().data();
  bench.launch(args);
  return bench.download(args.outputs, count);
}

std::vector<float> run_fusion(const GateFusionInputs& in, Target& target) {
  Bench bench(target);
  GateFusionArgs args;
  args.gate_logits = bench.floats("gate logits", in.gate_logits);
  args.a = bench.floats("a", in.a), args.b = bench.floats("b", in.b);
  args.rows = in.a.dim(0);
  args.heads = static_cast<std::int32_t>(in.a.dim(1));
  args.value_dim = static_cast<std::int32_t>(in.a.dim(2));
  args.outputs = bench.outputs(in.a.size());
  bench.launch(args);
  return bench.download(args.outputs, in.a.size());
}

std::vector<float> run_safe_gate(const SafeGateInputs& in, Target& target) {
  Bench bench(target);
  SafeGateArgs args;
  args.features = bench.upload("features", in.features);
  args.storage = in.features.dtype();
  args.a_log = bench.floats("a_log", in.a_log), args.dt_bias = bench.floats("bias", in.dt_bias);
  args.rows = in.features.dim(0);
  args.heads = static_cast<std::int32_t>(in.features.dim(1));
  args.key_dim = static_cast<std::int32_t>(in.features.dim(2));
  args.log_decay = bench.outputs(in.features.size());
  bench.launch(args);
  return bench.download(args.log_decay, in.features.size());
}

std::vector<sim::simt::Options> lane_orders() {
  std::vector<sim::simt::Options> orders(3);
  orders[1].order = sim::simt::LaneOrder::reverse;
  orders[2].order = sim::simt::LaneOrder::random;
  return orders;
}

Tensor normal_tensor(DType dtype, indexpool::Shape shape, double spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Tensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, spread * normal(random));
  return tensor;
}

LinearAttentionInputs random_linear(const LinearDraw& draw) {
  std::mt19937_64 random(draw.seed ^ 0x9e3779b97f4a7c15u);
  std::exponential_distribution<double> steep;
  std::uniform_real_distribution<double> uniform;
  const indexpool::Shape keys = {draw.tokens, draw.heads, draw.keys};
  LinearAttentionInputs in;
  in.queries = normal_tensor(draw.storage, keys, 1, draw.seed);
  in.keys = normal_tensor(draw.storage, keys, 1, draw.seed + 1);
  in.values = normal_tensor(draw.storage, {draw.tokens, draw.heads, draw.values}, 1, draw.seed + 2);
  in.state = normal_tensor(DType::f32, {draw.heads, draw.keys, draw.values}, 1, draw.seed + 3);
  in.log_decay = Tensor(DType::f32, keys);
  in.beta = Tensor(DType::f32, {draw.tokens, draw.heads});
  for (std::int64_t i = 0; i < in.log_decay.size(); ++i)
    in.log_decay.set(i, std::max(-5.0, -draw.decay * steep(random)));
  for (std::int64_t i = 0; i < in.beta.size(); ++i) in.beta.set(i, uniform(random));
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(draw.keys)));
  return in;
}

LinearAttentionInputs tokens_of(const LinearAttentionInputs& inputs, std::int64_t begin,
                                std::int64_t end) {
  LinearAttentionInputs part = inputs;
  for (Tensor LinearAttentionInputs::*member :
       {&LinearAttentionInputs::queries, &LinearAttentionInputs::keys,
        &LinearAttentionInputs::values, &LinearAttentionInputs::log_decay,
        &LinearAttentionInputs::beta}) {
    const Tensor& whole = inputs.*member;
    indexpool::Shape shape = whole.shape();
    const std::int64_t row = whole.bytes().value / shape[0];
    shape[0] = end - begin;
    Tensor cut(whole.dtype(), shape);
    std::memcpy(cut.data(), whole.data() + begin * row,
                static_cast<std::size_t>((end - begin) * row));
    part.*member = cut;
  }
  part.state = inputs.state.clone();
  return part;
}

Tensor random_selection(std::int64_t rows, std::int64_t width, std::int64_t most,
                        std::int64_t tokens, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor selection(DType::i32, {rows, width});
  const auto places = selection.as<std::int32_t>();
  std::fill(places.begin(), places.end(), -1);
  std::vector<std::int32_t> all(static_cast<std::size_t>(tokens));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t n = 0; n < rows; ++n) {
    std::shuffle(all.begin(), all.end(), random);
    const auto row = places.begin() + n * width;
    std::copy_n(all.begin(), std::min({most, width, tokens}), row);
    std::shuffle(row, row + width, random);
  }
  return selection;
}

std::vector<float> run_composite(const CompositeAttentionInputs& in, Target& target,
                                 std::optional<float> scale) {
  Bench bench(target);
  const std::int64_t count = in.composites.size();
  DecompressArgs first;
  first.composites = bench.upload("composites", in.composites);
  first.query_weight = bench.upload("query weight", in.query_weight);
  first.key_weight = bench.upload("key weight", in.key_weight);
  first.storage = in.composites.dtype();
  first.tokens = in.composites.dim(0);
  first.heads = static_cast<std::int32_t>(in.composites.dim(1));
  first.head_dim = static_cast<std::int32_t>(in.composites.dim(2));
  first.queries = bench.outputs(count), first.keys = bench.outputs(count);
  bench.launch(first);
  CompositeAttentionArgs args;
  args.queries = first.queries, args.keys = first.keys;
  args.values = bench.upload("values", in.values);
  args.storage = first.storage, args.tokens = first.tokens;
  args.heads = first.heads, args.head_dim = first.head_dim;
  args.scale = scale.value_or(static_cast<float>(1 / std::sqrt(double{1} * args.head_dim)));
  args.outputs = bench.outputs(count);
  bench.launch(args);
  return bench.download(args.outputs, count);
}

FeedbackRun run_feedback(const FeedbackInputs& in, const AccessTerms& terms, Target& target) {
  Bench bench(target);
  const auto words = [&](const char* name, const std::vector<std::int32_t>& values) {
    return reinterpret_cast<const std::int32_t*>(
        bench.upload(name, values.data(), 4 * std::ssize(values)));
  };
  const auto counts = [&](std::int64_t count) {
    return reinterpret_cast<std::int32_t*>(bench.outputs(count));
  };
  const TokenSlots lists = token_slots(in.tokens.as<std::int32_t>());
  CountAttendedArgs first;
  first.attention_mass = bench.floats("masses", in.attention_mass);
  first.slots = in.attention_mass.size();
  first.counts = counts(attended_counts(first.slots));
  bench.launch(first);
  AttentionFeedbackArgs args;
  args.attention_mass = first.attention_mass, args.slots = first.slots, args.counts = first.counts;
  args.accesses = reinterpret_cast<const std::int32_t*>(bench.upload("accesses", terms.accesses));
  args.token_slots = words("slots of tokens", lists.slots);
  args.first_slot = words("first slots", lists.first);
  args.tokens = lists.tokens();
  args.index_kpool = static_cast<std::int32_t>(terms.accesses.dim(1));
  args.next_accesses = counts(args.slots), args.groups_accessed = counts(args.slots);
  args.host_token_slots = lists.slots.data(), args.host_first_slot = lists.first.data();
  bench.launch(args);
  return {bench.download(args.next_accesses, args.slots),
          bench.download(args.groups_accessed, args.slots)};
}

}  // namespace indexpool::kernels
