#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/error.hpp"
#include "indexpool/model/safetensors.hpp"

namespace indexpool {
namespace {

using nlohmann::json;
using Named = std::pair<const std::string, Tensor>;

// Larger elements first, so that each tensor is aligned to its element without gaps; then by name.
std::vector<const Named*> in_file_order(const TensorFile& file) {
  std::vector<const Named*> order;
  for (const Named& tensor : file.tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return info(a->second.dtype()).bytes > info(b->second.dtype()).bytes;
  });
  return order;
}

// Padded with spaces, so that the data section starts at a multiple of 8 bytes.
std::string header_of(const TensorFile& file, const std::vector<const Named*>& order) {
  json header = json::object();  // keys in name order
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::int64_t begin = 0;
  for (const Named* named : order) {
    const auto& [name, tensor] = *named;
    require(name != "__metadata__", "a tensor cannot be named __metadata__");
    const std::int64_t end = checked_sum(begin, tensor.bytes().value, "bytes of a file");
    header[name] = {{"dtype", info(tensor.dtype()).safetensors_name},
                    {"shape", tensor.shape()},
                    {"data_offsets", {begin, end}}};
    begin = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::exception& error) {
    throw ConfigError(fmt::format("{}: a name or metadata is not UTF-8 text: {}",
                                  file.path.string(), error.what()));
  }
}

void write_bytes(std::ofstream& stream, const std::string& header, const TensorFile& file,
                 const std::vector<const Named*>& order) {
  for (std::size_t i = 0; i < 8; ++i) {
    stream.put(static_cast<char>((header.size() >> (8 * i)) & 0xff));
  }
  stream << header;
  for (const Named* named : order) {
    const auto bytes = file.tensors.at(named->first).raw();
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  }
  stream.close();
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  const std::vector<const Named*> order = in_file_order(file);
  const std::string header = header_of(file, order);
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  if (stream) write_bytes(stream, header, file, order);
  if (stream) {
    std::filesystem::rename(temporary, path, error);
  } else if (!error) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!stream || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw EnvironmentError(
        fmt::format("{}: cannot be written: {}", path.string(), error.message()));
  }
}

}  // namespace indexpool
