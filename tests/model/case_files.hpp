// Case files of any shape with random content, for tests that need more than the golden ones.
#pragma once

#include <cstdint>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "indexpool/model/safetensors.hpp"

namespace indexpool {

// Replaces the one occurrence of `from`.
inline void edit(std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("not in the text: " + from);
  text.replace(at, from.size(), to);
}

inline Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937& random) {
  Tensor tensor(dtype, shape);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, normal(random));
  return tensor;
}

// The indexer's inputs of a batch; `runs` holds the first real token and the number of real tokens
// of each row.
struct ProjectionShape {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  std::int64_t length = 9, heads = 2, head_dim = 8, kpool = 4, topk = 8, hidden = 6, q_lora = 5;
  DType dtype = DType::f32;
  bool tail = true;
};

inline std::string describe(const ProjectionShape& s) {
  std::ostringstream text;
  text << std::boolalpha << R"({"batch": )" << s.runs.size() << R"(, "prefill": )" << s.length
       << R"(, "decode": 0, "heads": )" << s.heads << R"(, "head_dim": )" << s.head_dim
       << R"(, "kpool": )" << s.kpool << R"(, "topk": )" << s.topk << R"(, "hidden": )" << s.hidden
       << R"(, "q_lora": )" << s.q_lora << R"(, "dtype": ")"
       << (s.dtype == DType::f32    ? "float32"
           : s.dtype == DType::bf16 ? "bfloat16"
                                    : "float16")
       << R"(", "always_select_tail": )" << s.tail << R"(, "k_norm_eps": 1e-06})";
  return text.str();
}

inline TensorFile projection_file(const ProjectionShape& s, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  const auto batch = static_cast<std::int64_t>(s.runs.size());
  TensorFile file;
  file.metadata["case"] = describe(s);
  const auto add = [&](const char* name, DType dtype, const Shape& shape) {
    file.tensors[name] = random_tensor(dtype, shape, random);
  };
  add("hidden_states", s.dtype, {batch, s.length, s.hidden});
  add("q_resid", s.dtype, {batch, s.length, s.q_lora});
  add("q", s.dtype, {batch, s.length, s.heads, s.head_dim});
  add("k", s.dtype, {batch, s.length, s.head_dim});
  add("gate_scores", s.dtype, {batch, s.length, s.head_dim});
  add("head_weights", DType::f32, {batch, s.length, s.heads});
  add("param.wq_b.weight", s.dtype, {s.heads * s.head_dim, s.q_lora});
  add("param.wk.weight", s.dtype, {s.head_dim, s.hidden});
  add("param.k_norm.weight", s.dtype, {s.head_dim});
  add("param.k_norm.bias", s.dtype, {s.head_dim});
  add("param.weights_proj.weight", s.dtype, {s.heads, s.hidden});
  add("param.index_kpool_compress_gate", s.dtype, {s.head_dim, s.hidden});
  add("param.index_kpool_compress_ape", s.dtype, {s.kpool, s.head_dim});
  Tensor mask(DType::u8, {batch, s.length});
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto [first, count] = s.runs[static_cast<std::size_t>(row)];
    for (std::int64_t i = 0; i < count; ++i) mask.set(row * s.length + first + i, 1);
  }
  file.tensors["attention_mask"] = mask;
  return file;
}

inline TensorFile fp8_file(std::int64_t tokens, std::int64_t heads, std::int64_t head_dim,
                           std::int64_t kpool, std::int64_t topk, const std::string& scale_rule) {
  std::mt19937 random(2);
  TensorFile file;
  std::ostringstream text;
  text << R"({"stage": "fp8", "tokens": )" << tokens << R"(, "heads": )" << heads
       << R"(, "head_dim": )" << head_dim << R"(, "kpool": )" << kpool << R"(, "topk": )" << topk
       << R"(, "scale_rule": ")" << scale_rule << R"("})";
  file.metadata["case"] = text.str();
  file.tensors["k"] = random_tensor(DType::bf16, {tokens, head_dim}, random);
  file.tensors["gate_scores"] = random_tensor(DType::bf16, {tokens, head_dim}, random);
  file.tensors["q"] = random_tensor(DType::bf16, {tokens, heads, head_dim}, random);
  file.tensors["head_weights"] = random_tensor(DType::f32, {tokens, heads}, random);
  file.tensors["ape"] = random_tensor(DType::f32, {kpool, head_dim}, random);
  return file;
}

}  // namespace indexpool
