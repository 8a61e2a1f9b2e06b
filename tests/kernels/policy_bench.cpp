#include "policy_bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace indexpool::kernels {
namespace {

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : bits_(seed) {}

  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(end));
  }
  double normal() { return normal_(bits_); }
  double uniform() { return std::generate_canonical<double, 53>(bits_); }
  Tensor normals(DType dtype, indexpool::Shape shape, double spread = 1) {
    return filled(dtype, std::move(shape), [&] { return spread * normal(); });
  }
  template <class F>
  Tensor filled(DType dtype, indexpool::Shape shape, F&& f) {
    Tensor tensor(dtype, std::move(shape));
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, f());
    return tensor;
  }

 private:
  std::mt19937_64 bits_;
  std::normal_distribution<double> normal_;
};

std::vector<VectorGroup> random_groups(const PolicyShape& shape, std::int64_t rows,
                                       std::int64_t sets, std::int64_t span, Numbers& numbers) {
  std::vector<VectorGroup> groups;
  for (std::int64_t g = 0; g < shape.groups; ++g) {
    VectorGroup group;
    group.first_row = numbers.below(rows - span);
    group.weight_set = static_cast<std::int32_t>(numbers.below(sets));
    if (shape.absent && numbers.below(3) == 0)
      group.absent = static_cast<std::int32_t>(numbers.below(shape.index_kpool));
    groups.push_back(group);
  }
  return groups;
}

Tensor given_weights(std::int64_t sets, std::int64_t m, Numbers& numbers) {
  Tensor weights = numbers.filled(DType::f32, {sets, m}, [&] { return numbers.uniform(); });
  return weights;
}

// Rows that a group may name.
std::int64_t weight_sets_of(const PoolingInputs& in, std::int64_t groups) {
  if (const auto* given = std::get_if<GivenWeights>(&in.weights)) return given->pool_weights.dim(0);
  if (const auto* roles = std::get_if<RoleMatrix>(&in.weights)) return roles->pool_matrix.dim(0);
  return std::max<std::int64_t>(groups, 1);
}

WeightOperands operands(const PolicyShape& shape, const PoolingInputs& in, std::int64_t sets,
                        Numbers& numbers) {
  const std::int64_t m = shape.index_kpool, g = shape.groups, d = shape.head_dim;
  const DType storage = in.mode.storage;
  const indexpool::Shape per_vector = {g, m};
  const auto count = [&] { return static_cast<double>(numbers.below(1000)); };
  switch (find_policy(shape.policy).rule) {
    case WeightRule::role_softmax:
      return RoleMatrix{numbers.normals(DType::f32, {sets, m}, 3)};
    case WeightRule::additive: {
      AdditiveTerms terms;
      terms.queries = numbers.normals(storage, {g, d});
      terms.distances =
          numbers.filled(DType::f32, per_vector, [&] { return 8 * numbers.normal(); });
      terms.ages = numbers.filled(DType::f32, per_vector, [&] { return 99 * numbers.uniform(); });
      terms.raw_cosine = shape.policy == "additive_raw";
      return terms;
    }
    case WeightRule::gated: {
      const double spread = 1 / std::sqrt(static_cast<double>(shape.hidden + d));
      const std::int64_t tokens = (g + shape.heads - 1) / shape.heads;
      return GateOperands{numbers.normals(storage, {tokens, shape.hidden}),
                          numbers.normals(storage, {shape.heads, shape.hidden + d}, spread),
                          numbers.normals(DType::f32, {shape.heads})};
    }
    case WeightRule::tfidf: {
      AccessTerms terms;
      terms.queries = numbers.normals(storage, {g, d});
      terms.accesses = numbers.filled(DType::i32, per_vector, count);
      terms.groups_accessed = numbers.filled(DType::i32, per_vector, count);
      terms.position_terms = numbers.filled(DType::f32, {m}, [&] { return numbers.uniform(); });
      terms.all_groups = 1000;
      return terms;
    }
    case WeightRule::channel_softmax:
      return ChannelScores{numbers.normals(storage, in.vectors.shape(), 3),
                           numbers.normals(DType::f32, {m, d})};
    default:
      return GivenWeights{given_weights(sets, m, numbers)};
  }
}

struct Upload {
  Target& target;

  template <class T = std::byte>
  const T* operator()(const char* name, const Tensor& tensor) const {
    if (tensor.empty()) return nullptr;
    return reinterpret_cast<const T*>(
        upload_values(target, name, tensor.data(), tensor.bytes().value));
  }
};

void place_weights(const PoolingInputs& in, const Upload& upload, PlacedPooling& at) {
  if (const auto* roles = std::get_if<RoleMatrix>(&in.weights))
    at.pool_matrix = upload.operator()<float>("pool matrix", roles->pool_matrix);
  if (const auto* terms = std::get_if<AdditiveTerms>(&in.weights)) {
    at.queries = upload("queries", terms->queries);
    at.distances = upload.operator()<float>("distances", terms->distances);
    at.ages = upload.operator()<float>("ages", terms->ages);
  }
  if (const auto* gate = std::get_if<GateOperands>(&in.weights)) {
    at.hidden_states = upload("hidden states", gate->hidden_states);
    at.gate_weight = upload("gate weight", gate->gate_weight);
    at.gate_bias = upload.operator()<float>("gate bias", gate->gate_bias);
  }
  if (const auto* terms = std::get_if<AccessTerms>(&in.weights)) {
    at.queries = upload("queries", terms->queries);
    at.accesses = upload.operator()<std::int32_t>("accesses", terms->accesses);
    at.groups_accessed = upload.operator()<std::int32_t>("among", terms->groups_accessed);
    at.position_terms = upload.operator()<float>("position terms", terms->position_terms);
  }
  if (const auto* scores = std::get_if<ChannelScores>(&in.weights)) {
    at.gate_scores = upload("gate scores", scores->gate_scores);
    at.position_bias = upload.operator()<float>("position bias", scores->position_bias);
  }
}

template <class T>
T* room(Target& target, const char* name, std::int64_t count) {
  return reinterpret_cast<T*>(target.allocate(name, count * std::int64_t{sizeof(T)}, unwritten));
}

PlacedPooling place(const PoolingInputs& in, Target& target, const RunOptions& options) {
  const Upload upload{target};
  const std::int64_t groups = in.group_count();
  PlacedPooling at;
  at.vectors = upload("vectors", in.vectors);
  at.groups = upload_values(target, "groups", in.groups.data(), groups);
  place_weights(in, upload, at);
  at.norm_weight = upload.operator()<float>("norm weight", in.norm_rope.norm_weight);
  at.rope = upload.operator()<float>("rope", in.norm_rope.rope);
  at.hidden_gates = room<float>(target, "hidden gates", hidden_gate_count(in));
  at.pool_weights = room<float>(target, "pool weights", pool_weight_count(in));
  if (const auto* given = std::get_if<GivenWeights>(&in.weights))
    target.upload(reinterpret_cast<std::byte*>(at.pool_weights), given->pool_weights.data(),
                  given->pool_weights.bytes().value);
  at.pooled = room<std::byte>(target, "pooled", groups * in.head_dim * info(in.mode.cache).bytes);
  if (in.mode.quantised()) at.scales = room<float>(target, "scales", groups);
  if (options.checksums) at.checksums = room<PoolChecksum>(target, "checksums", groups);
  at.fallbacks = room<std::int32_t>(target, "fallbacks", groups);
  return at;
}

std::string describe(const Traffic& t) {
  return fmt::format(
      "loads {} B in {} sectors, stores {} B in {}, shared {} and {} B in {} passes, {} matrix "
      "operations, {} barriers, {} shuffles",
      t.global_load.value, t.load_sectors, t.global_store.value, t.store_sectors,
      t.shared_load.value, t.shared_store.value, t.shared_wavefronts, t.matrix_ops,
      t.block_barriers, t.shuffles);
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

PoolingInputs policy_inputs(const PolicyShape& shape, std::uint64_t seed) {
  Numbers numbers(seed);
  PoolingInputs in;
  in.policy = shape.policy;
  in.mode = pooling_mode(shape.mode);
  in.index_kpool = shape.index_kpool;
  in.head_dim = shape.head_dim;
  in.heads = shape.heads;
  for (std::int64_t i = 0; i < shape.index_kpool; ++i) in.offsets.push_back(2 * i);
  std::swap(in.offsets.front(), in.offsets.back());
  const std::int64_t span = 2 * shape.index_kpool, rows = span + 1 + shape.groups;
  in.vectors = numbers.filled(in.mode.storage, {rows, shape.head_dim},
                              [&] { return numbers.normal() * (numbers.below(64) == 0 ? 30 : 1); });
  const std::int64_t sets = 1 + numbers.below(shape.groups + 1);
  in.weights = operands(shape, in, sets, numbers);
  in.groups = random_groups(shape, rows, weight_sets_of(in, shape.groups), span, numbers);
  if (shape.norm_rope_dims < 0) return in;
  in.norm_rope.norm_weight = numbers.normals(DType::f32, {shape.head_dim});
  in.norm_rope.rope_dims = shape.norm_rope_dims;
  in.norm_rope.rope = Tensor(DType::f32, {shape.groups, shape.norm_rope_dims});
  for (std::int64_t i = 0; i < in.norm_rope.rope.size(); i += 2) {
    const double angle = 7 * numbers.uniform();
    in.norm_rope.rope.set(i, std::cos(angle));
    in.norm_rope.rope.set(i + 1, std::sin(angle));
  }
  return in;
}

bool PolicyRun::operator==(const PolicyRun& other) const {
  return same_bytes(pool_weights, other.pool_weights) && same_bytes(pooled, other.pooled) &&
         same_bytes(scales, other.scales) && same_bytes(checksums, other.checksums) &&
         same_bytes(fallbacks, other.fallbacks);
}

void launch_checked(const OpArgs& args, Target& target) {
  const Kernel& kernel = find_kernel(target.name(), args);
  sim::simt::Session* const session = target.context().simt;
  if (session != nullptr) session->counted = {};
  kernel.launch(args, target.context());
  const Traffic declared = kernel.work(args).traffic;
  if (session != nullptr && session->options.count && !(declared == session->counted))
    throw std::runtime_error(fmt::format("{} declares {} but causes {}", kernel.name,
                                         describe(declared), describe(session->counted)));
  const std::string damage = target.check_guards();
  if (!damage.empty()) throw std::runtime_error(fmt::format("{}: {}", kernel.name, damage));
}

PolicyRun run_policy(const PoolingInputs& inputs, Target& target, const RunOptions& options) {
  PolicyRun run;
  const PlacedPooling at = place(inputs, target, options);
  std::vector<OpArgs> launches = weight_launches(inputs, at);
  if (!options.pool_weights.empty()) {
    launches.clear();
    target.upload(reinterpret_cast<std::byte*>(at.pool_weights), options.pool_weights.data(),
                  pool_weight_count(inputs) * 4);
  }
  launches.emplace_back(PolicyArgs(pool_launch(inputs, at)));
  for (const OpArgs& launch : launches) {
    launch_checked(launch, target);
    run.kernels.emplace_back(find_kernel(target.name(), launch).name);
  }
  const std::int64_t groups = inputs.group_count();
  run.pool_weights = download_values(target, at.pool_weights, pool_weight_count(inputs));
  run.pooled =
      download_values(target, at.pooled, groups * inputs.head_dim * info(inputs.mode.cache).bytes);
  if (at.scales != nullptr) run.scales = download_values(target, at.scales, groups);
  if (at.checksums != nullptr) run.checksums = download_values(target, at.checksums, groups);
  run.fallbacks = download_values(target, at.fallbacks, groups);
  return run;
}

PolicyRun run_policy(const PoolingInputs& inputs, const RunOptions& options) {
  const auto target = make_simt_target(options.executor);
  return run_policy(inputs, *target, options);
}

}  // namespace indexpool::kernels
