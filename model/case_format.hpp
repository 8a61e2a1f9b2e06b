// The kinds of golden case and what reading them shares. Internal to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/safetensors.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {

// `description` is the JSON of the file's metadata under "case".
Case read_projection_case(const TensorFile& file, const JsonValue& description);
Case read_fp8_case(const TensorFile& file, const JsonValue& description);
Case read_indexer_case(const TensorFile& file, const JsonValue& description);

// Sizes come from the description first, then from validate(); errors name the file.
IndexerConfig read_indexer(const TensorFile& file, const JsonObject& description);

// Throws ConfigError for a tensor that is not in the list: a misspelt optional one would go unseen.
void refuse_unknown_tensors(const TensorFile& file, const std::vector<std::string>& known);

// Throws ConfigError naming the tensor and the index of its first NaN or infinity; a gate score may
// be -inf.
void require_finite(const TensorFile& file, const std::string& name);
// The same for [B, T, ...], looking at the tokens of `sequences` only: padding is never used.
void require_finite(const TensorFile& file, const std::string& name,
                    const std::vector<Sequence>& sequences);

// [B, T, ...] without its padding: [N, ...].
Tensor real_tokens(const Tensor& padded, const std::vector<Sequence>& sequences);

}  // namespace indexpool
