#include "indexpool/model/case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/case_format.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

Shape index_of(std::int64_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

// Elements of one token in [B, T, ...].
std::int64_t elements_per_token(const Tensor& padded) {
  return element_count(Shape(padded.shape().begin() + 2, padded.shape().end()));
}

void require_finite(const TensorFile& file, const std::string& name, std::int64_t begin,
                    std::int64_t end) {
  const Tensor& tensor = file.require(name);
  // A gate score of -inf is a weight of exactly 0.
  const bool may_mask = name == "gate_scores";
  for (std::int64_t i = begin; i < end; ++i) {
    const double value = tensor.at(i);
    if (std::isfinite(value) || (may_mask && value == -HUGE_VAL)) continue;
    throw ConfigError(
        fmt::format(R"({}: tensor "{}": found {} at {}; expected finite numbers only{})",
                    file.path.string(), name, std::isnan(value) ? "NaN" : fmt::format("{}", value),
                    to_string(index_of(i, tensor.shape())), may_mask ? " (or -inf)" : ""));
  }
}

// Gate scores of -inf all through a pool would make its weights 0 / 0.
void require_weights(const IndexerInputs& inputs, const std::filesystem::path& path) {
  const std::int64_t kpool = inputs.config.index_kpool, dim = inputs.config.index_head_dim;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    const Sequence& sequence = inputs.sequences[s];
    for (std::int64_t i = 0; i < sequence.length / kpool * dim; ++i) {
      const std::int64_t pool = i / dim, channel = i % dim;
      const auto masked = [&](std::int64_t j) {
        const std::int64_t row = sequence.first_row + pool * kpool + j;
        return inputs.gate_scores.at(row * dim + channel) == -HUGE_VAL;
      };
      std::int64_t j = 0;
      while (j < kpool && masked(j)) ++j;
      if (j < kpool) continue;
      throw ConfigError(fmt::format(
          "{}: gate_scores of sequence {}, pool {}, channel {} are all -inf; expected a token that "
          "has a weight",
          path.string(), s, pool, channel));
    }
  }
}

}  // namespace

IndexerConfig read_indexer(const TensorFile& file, const JsonObject& description) {
  IndexerConfig config;
  config.index_n_heads = description["heads"].integer(1);
  config.index_head_dim = description["head_dim"].integer(1);
  config.index_topk = description["topk"].integer(1);
  config.index_kpool = description["kpool"].integer(1);
  const auto tail = description.find("always_select_tail");
  config.index_kpool_always_select_tail = !tail || tail->boolean();
  validate(config, file.path.string() + R"(: metadata "case")");
  return config;
}

void refuse_unknown_tensors(const TensorFile& file, const std::vector<std::string>& known) {
  for (const auto& [name, tensor] : file.tensors) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError(fmt::format(R"({}: unknown tensor "{}"{} (known here: {}))",
                                  file.path.string(), name, did_you_mean(name, known),
                                  fmt::join(known, ", ")));
  }
}

void require_finite(const TensorFile& file, const std::string& name) {
  require_finite(file, name, 0, file.require(name).size());
}

void require_finite(const TensorFile& file, const std::string& name,
                    const std::vector<Sequence>& sequences) {
  const Tensor& padded = file.require(name);
  const std::int64_t width = elements_per_token(padded);
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    const auto first = static_cast<std::int64_t>(row) * padded.dim(1) + sequences[row].first_key;
    require_finite(file, name, first * width, (first + sequences[row].length) * width);
  }
}

Tensor real_tokens(const Tensor& padded, const std::vector<Sequence>& sequences) {
  std::int64_t tokens = 0;
  for (const Sequence& sequence : sequences) tokens += sequence.length;
  Shape shape(padded.shape().begin() + 1, padded.shape().end());
  shape[0] = tokens;
  Tensor result(padded.dtype(), shape);
  const std::int64_t stride = elements_per_token(padded) * info(padded.dtype()).bytes;
  if (stride == 0) return result;
  for (std::size_t row = 0; row < sequences.size(); ++row) {
    const Sequence& sequence = sequences[row];
    if (sequence.length == 0) continue;
    const auto first = static_cast<std::int64_t>(row) * padded.dim(1) + sequence.first_key;
    std::memcpy(result.data() + sequence.first_row * stride, padded.data() + first * stride,
                static_cast<std::size_t>(sequence.length * stride));
  }
  return result;
}

Case read_case(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const auto text = file.metadata.find("case");
  if (text == file.metadata.end()) {
    throw ConfigError(path.string() +
                      R"(: the header's __metadata__ has no "case"; expected the JSON that )"
                      "describes an indexer case (tests/golden/README.md)");
  }
  const JsonValue description = parse_json(text->second, path.string() + R"(: metadata "case")");
  // A stage that nobody knows is said before its unknown keys are.
  std::string stage;
  for (const auto& [key, value] : description.members()) {
    if (key != "stage") continue;
    stage = value.text();
    if (stage != "fp8" && stage != "indexer") {
      value.fail(fmt::format(R"(found "{}", expected "fp8" or "indexer")", stage));
    }
  }
  Case result = stage.empty()        ? read_projection_case(file, description)
                : stage == "indexer" ? read_indexer_case(file, description)
                                     : read_fp8_case(file, description);
  result.name = path.stem().string();
  require_weights(result.inputs, path);
  return result;
}

}  // namespace indexpool
