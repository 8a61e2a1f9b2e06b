#include "indexpool/model/safetensors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t length_bytes = 8;
constexpr std::int64_t largest_header = 100'000'000;  // safetensors README, "Format"
constexpr std::string_view metadata_key = "__metadata__";

// A whole file, mapped for reading until the last owner of `bytes` is gone.
struct Mapping {
  std::shared_ptr<std::byte> bytes;
  std::int64_t size = 0;
};

[[noreturn]] void fail_to_open(const std::filesystem::path& path, const std::string& why) {
  throw ConfigError(
      fmt::format("{}: {}; expected a readable safetensors file", path.string(), why));
}

Mapping map_file(const std::filesystem::path& path) {
  // Non-blocking, so that opening a pipe by mistake does not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    fail_to_open(path, "cannot be opened: " + std::generic_category().message(errno));
  }
  const std::shared_ptr<void> closer(nullptr, [descriptor](void*) { ::close(descriptor); });
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail_to_open(path, "is not a regular file");
  }
  const auto size = static_cast<std::int64_t>(status.st_size);
  if (size < length_bytes) {
    throw ConfigError(fmt::format(
        "{}: byte {}: the file ends here; expected the 8 bytes of the header's length at byte 0",
        path.string(), size));
  }
  const auto length = static_cast<std::size_t>(size);
  void* address = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    throw EnvironmentError(fmt::format("{}: cannot be mapped into memory: {}", path.string(),
                                       std::generic_category().message(errno)));
  }
  return {std::shared_ptr<std::byte>(static_cast<std::byte*>(address),
                                     [length](std::byte* start) { ::munmap(start, length); }),
          size};
}

// The header's length, from the file's first 8 bytes, little-endian.
std::int64_t header_length(const Mapping& file, const std::string& name) {
  std::uint64_t length = 0;
  for (std::int64_t i = 0; i < length_bytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file.bytes.get()[i]) << (8 * i);
  }
  if (length > static_cast<std::uint64_t>(largest_header)) {
    throw ConfigError(fmt::format(
        "{}: byte 0: the header's length is {} bytes, more than the {} that the format allows; "
        "expected a safetensors file",
        name, length, largest_header));
  }
  const std::int64_t room = file.size - length_bytes;
  if (static_cast<std::int64_t>(length) > room) {
    throw ConfigError(fmt::format(
        "{}: byte 0: the header's length is {} bytes, but only {} follow; the file is truncated or "
        "not a safetensors file",
        name, length, room));
  }
  return static_cast<std::int64_t>(length);
}

struct Entry {
  std::string name;
  DType dtype{};
  Shape shape;
  std::int64_t begin = 0, end = 0;  // within the data section
};

DType read_dtype(const JsonValue& value) {
  const std::string name = value.text();
  if (const auto dtype = dtype_from_safetensors_name(name)) return *dtype;
  value.fail(fmt::format(
      R"(the dtype "{}" is not supported; expected F64, F32, BF16, F16, F8_E4M3, F8_E5M2, I64, I32, )"
      R"(I8 or U8)",
      name));
}

Entry read_entry(const std::string& name, const JsonValue& value, std::int64_t data_start,
                 std::int64_t data_bytes) {
  const JsonObject object = value.object({"dtype", "shape", "data_offsets"});
  Entry entry{name, read_dtype(object["dtype"]), {}, 0, 0};
  for (const JsonValue& size : object["shape"].array()) entry.shape.push_back(size.integer(0));
  const JsonValue offsets = object["data_offsets"];
  const std::vector<JsonValue> pair = offsets.array();
  if (pair.size() != 2) offsets.fail(fmt::format("found {} numbers, expected 2", pair.size()));
  entry.begin = pair[0].integer(0);
  entry.end = pair[1].integer(entry.begin);
  if (entry.end > data_bytes) {
    pair[1].fail(fmt::format(
        "found {}, but {} bytes follow the header, which ends at byte {}; the file is truncated or "
        "the offset wrong",
        entry.end, data_bytes, data_start));
  }
  std::int64_t expected = 0;
  try {
    expected = checked_product(element_count(entry.shape), info(entry.dtype).bytes, "its bytes");
  } catch (const ConfigError& error) {
    value.fail(error.what());
  }
  if (entry.end - entry.begin != expected) {
    offsets.fail(fmt::format("found {} bytes, but {} {} takes {}", entry.end - entry.begin,
                             info(entry.dtype).name, to_string(entry.shape), expected));
  }
  return entry;
}

// The tensors must cover the data section exactly: no overlap, no gap, nothing left over.
void check_layout(std::vector<Entry>& entries, std::int64_t data_bytes, std::int64_t data_start,
                  const std::string& name) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t covered = 0;
  std::string before = "the header";
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      throw ConfigError(fmt::format(
          R"({}: byte {}: tensor "{}" {} {}; expected it to begin at byte {})", name,
          data_start + entry.begin, entry.name,
          entry.begin < covered ? "overlaps" : "leaves a gap after", before, data_start + covered));
    }
    covered = entry.end;
    before = fmt::format(R"(tensor "{}")", entry.name);
  }
  if (covered != data_bytes) {
    throw ConfigError(
        fmt::format("{}: byte {}: {} bytes belong to no tensor; expected the file's end", name,
                    data_start + covered, data_bytes - covered));
  }
}

// Views the mapping, or copies where an element would not be aligned: the format does not promise
// that it is.
Tensor view(const Mapping& file, const Entry& entry, std::int64_t data_start) {
  std::byte* start = file.bytes.get() + data_start + entry.begin;
  const auto alignment = static_cast<std::uintptr_t>(info(entry.dtype).bytes);
  if (reinterpret_cast<std::uintptr_t>(start) % alignment == 0) {
    return Tensor(entry.dtype, entry.shape, std::shared_ptr<std::byte>(file.bytes, start));
  }
  Tensor copy(entry.dtype, entry.shape);
  if (!copy.empty()) std::memcpy(copy.data(), start, copy.raw().size());
  return copy;
}

}  // namespace

TensorFile read_safetensors(const std::filesystem::path& path) {
  const std::string name = path.string();
  const Mapping mapping = map_file(path);
  const std::int64_t length = header_length(mapping, name);
  const std::int64_t data_start = length_bytes + length;
  const std::int64_t data_bytes = mapping.size - data_start;
  const std::string_view text(reinterpret_cast<const char*>(mapping.bytes.get()) + length_bytes,
                              static_cast<std::size_t>(length));
  const JsonValue header = parse_json(text, name + ": header at byte 8");

  TensorFile file;
  file.path = path;
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.members()) {
    if (key == metadata_key) {
      for (const auto& [item, content] : value.members()) file.metadata[item] = content.text();
    } else {
      entries.push_back(read_entry(key, value, data_start, data_bytes));
    }
  }
  check_layout(entries, data_bytes, data_start, name);
  for (const Entry& entry : entries) {
    file.tensors.emplace(entry.name, view(mapping, entry, data_start));
  }
  return file;
}

const Tensor& TensorFile::require(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [key, tensor] : tensors) names.push_back(key);
  throw ConfigError(fmt::format(R"({}: the tensor "{}" is missing{} (the file has: {}))",
                                path.empty() ? "tensors in memory" : path.string(), name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
}

const Tensor& TensorFile::require(const std::string& name, DType dtype, const Shape& shape) const {
  const Tensor& tensor = require(name);
  bool matches = tensor.dtype() == dtype && tensor.shape().size() == shape.size();
  std::vector<std::string> sizes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    sizes.push_back(shape[axis] < 0 ? "any" : std::to_string(shape[axis]));
    matches = matches && (shape[axis] < 0 || tensor.dim(axis) == shape[axis]);
  }
  if (matches) return tensor;
  throw ConfigError(fmt::format(R"({}: tensor "{}": found {} {}, expected {} [{}])",
                                path.empty() ? "tensors in memory" : path.string(), name,
                                info(tensor.dtype()).name, to_string(tensor.shape()),
                                info(dtype).name, fmt::join(sizes, ", ")));
}

}  // namespace indexpool
