// Operands of a published form, the kernels run over them on the executor, and what the run left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/policy/plan.hpp"
#include "indexpool/model/pooling.hpp"

namespace indexpool::kernels {

struct PolicyShape {
  std::string policy = "plain", mode = "bf16";
  std::int64_t index_kpool = 4, head_dim = 128, groups = 5, heads = 1, hidden = 48;
  std::int64_t norm_rope_dims = -1;  // below 0: neither norm nor rotation
  bool absent = false;               // some groups lack vectors
};
// Rows in any order and shared by groups; N(0, 1) with an outlier here and there.
PoolingInputs policy_inputs(const PolicyShape& shape, std::uint64_t seed);

struct PolicyRun {
  std::vector<float> pool_weights;
  std::vector<std::byte> pooled;
  std::vector<float> scales;
  std::vector<PoolChecksum> checksums;
  std::vector<std::int32_t> fallbacks;
  std::vector<std::string> kernels;  // in the order they ran

  bool operator==(const PolicyRun& other) const;  // bytes
};
struct RunOptions {
  sim::simt::Options executor;
  bool checksums = true;
  std::vector<float> pool_weights = {};  // instead of those the policy makes
};
// Throws when declared and counted traffic differ or guards are damaged.
PolicyRun run_policy(const PoolingInputs& inputs, const RunOptions& options = {});
PolicyRun run_policy(const PoolingInputs& inputs, Target& target, const RunOptions& options);

// Launches on a target, comparing what is declared with what is counted.
void launch_checked(const OpArgs& args, Target& target);

inline constexpr std::byte unwritten{0x7f};
template <class T>
T* upload_values(Target& target, const char* name, const T* values, std::int64_t count) {
  const auto bytes = count * std::int64_t{sizeof(T)};
  std::byte* const buffer = target.allocate(name, bytes, unwritten);
  target.upload(buffer, values, bytes);
  return reinterpret_cast<T*>(buffer);
}
template <class T>
std::vector<T> download_values(Target& target, const T* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  target.download(values.data(), reinterpret_cast<const std::byte*>(from),
                  count * std::int64_t{sizeof(T)});
  return values;
}

}  // namespace indexpool::kernels
