// safetensors files: 8 bytes little-endian header length, JSON header, then the tensors' bytes.
// Format: the safetensors project's README (offsets relative to the data section, contiguous, no
// overlap, header at most 100 MB, optional string map "__metadata__").
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "indexpool/model/tensor.hpp"

namespace indexpool {

struct TensorFile {
  std::filesystem::path path;  // for error texts; empty when built in memory
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;

  // Throws ConfigError naming file and tensor when absent, or when dtype or shape differ.
  // A negative size in `shape` accepts any.
  const Tensor& require(const std::string& name) const;
  const Tensor& require(const std::string& name, DType dtype, const Shape& shape) const;
  bool contains(const std::string& name) const { return tensors.contains(name); }
};

// Maps the file; tensors view the mapping. Throws ConfigError with the byte offset for: a file
// shorter than its header, a header that is not JSON, unknown dtypes, sizes that overflow, offsets
// out of range, overlapping, with gaps, or not matching dtype and shape.
TensorFile read_safetensors(const std::filesystem::path& path);

// Writes under a temporary name in the same folder (created if absent), then renames. Header in
// name order, padded to 8 bytes; data by element size, largest first, so that every tensor is
// aligned, then by name: the same content gives the same bytes. Throws EnvironmentError when it
// cannot write.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace indexpool
