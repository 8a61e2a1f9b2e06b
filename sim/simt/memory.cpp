#include "indexpool/sim/simt/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::sim::simt {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t guard_bytes = page;  // at each end
constexpr std::size_t alignment = 256;     // as cudaMalloc's
constexpr std::byte canary{0xC7};

// A mapping rather than the heap for every buffer: pages arrive zeroed and on first touch.
std::byte* map_pages(const std::string& name, std::size_t bytes) {
  void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    throw EnvironmentError(fmt::format(
        "buffer '{}': cannot map {} bytes: {}. Sparse buffers need address space beyond "
        "the machine's memory: raise `ulimit -v`, set vm.overcommit_memory to 0 or 1, "
        "or choose a smaller problem.",
        name, bytes, std::strerror(errno)));
  }
  return static_cast<std::byte*>(begin);
}

const std::byte* first_damage(const std::byte* begin, const std::byte* end) {
  return std::find_if(begin, end, [](std::byte b) { return b != canary; });
}

std::string guard_damage(const Buffer& buffer) {
  std::string text;
  const auto* begin = reinterpret_cast<const std::byte*>(buffer.begin);
  const std::byte* end = begin + buffer.bytes;
  const std::byte* map_end = buffer.mapping + buffer.mapping_bytes;
  const std::byte* front = first_damage(begin - guard_bytes, begin);
  if (front != begin) {
    text += fmt::format("buffer '{}' ({} bytes) was written {} bytes before its start\n",
                        buffer.name, buffer.bytes, begin - front);
  }
  const std::byte* back = first_damage(end, map_end);
  if (back != map_end) {
    text += fmt::format("buffer '{}' ({} bytes) was written {} bytes past its end\n", buffer.name,
                        buffer.bytes, back - end);
  }
  return text;
}

}  // namespace

Memory::Memory() : impl_(std::make_unique<Impl>()) {}

Memory::~Memory() {
  for (const auto& [begin, buffer] : impl_->buffers) munmap(buffer.mapping, buffer.mapping_bytes);
}

std::byte* Memory::allocate(std::string name, std::int64_t bytes, std::byte poison, bool sparse) {
  if (bytes < 0) {
    throw ConfigError(fmt::format("buffer '{}': {} bytes; expected at least 0", name, bytes));
  }
  const auto size = static_cast<std::size_t>(bytes);
  const std::size_t padded = (size + guard_bytes + page - 1) / page * page;  // with the back guard
  const std::size_t total = guard_bytes + padded;
  static_assert(guard_bytes % alignment == 0);
  std::byte* mapping = map_pages(name, total);
  std::byte* begin = mapping + guard_bytes;
  std::memset(mapping, static_cast<int>(canary), guard_bytes);
  if (!sparse) std::memset(begin, static_cast<int>(poison), size);
  std::memset(begin + size, static_cast<int>(canary), padded - size);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  impl_->buffers[address] = {std::move(name), address, bytes, mapping, total};
  impl_->last_hit = {};
  return begin;
}

void Memory::release(std::byte* buffer) {
  if (buffer == nullptr) return;
  const auto found = impl_->buffers.find(reinterpret_cast<std::uintptr_t>(buffer));
  require(found != impl_->buffers.end(), "release of an address that is not a live buffer");
  impl_->damage_of_released += guard_damage(found->second);
  munmap(found->second.mapping, found->second.mapping_bytes);
  impl_->buffers.erase(found);
  impl_->last_hit = {};
}

std::string Memory::check_guards() const {
  std::string text = impl_->damage_of_released;
  for (const auto& [begin, buffer] : impl_->buffers) text += guard_damage(buffer);
  if (!text.empty()) text.pop_back();  // the last newline
  return text;
}

bool Memory::Impl::find(std::uintptr_t address, int bytes, const SourceLine& where) {
  auto after = buffers.upper_bound(address);
  if (after == buffers.begin()) return false;
  const Buffer& buffer = std::prev(after)->second;
  const std::uintptr_t offset = address - buffer.begin;
  const auto size = static_cast<std::uintptr_t>(buffer.bytes);
  if (offset + static_cast<std::uintptr_t>(bytes) > size) return false;
  last_hit[site_number(where) % last_hit.size()] = {buffer.begin, size};
  return true;
}

std::string Memory::Impl::place_of(std::uintptr_t address) const {
  if (address < page) return fmt::format("a null pointer plus {}", address);
  if (buffers.empty()) return "an address while no buffer is allocated";
  const auto after = buffers.upper_bound(address);
  const Buffer* below = after == buffers.begin() ? nullptr : &std::prev(after)->second;
  const Buffer* above = after == buffers.end() ? nullptr : &after->second;
  const auto past_end = [&](const Buffer& b) {
    return address - b.begin - static_cast<std::uintptr_t>(b.bytes);
  };
  if (below && address - below->begin < static_cast<std::uintptr_t>(below->bytes)) {
    return fmt::format("offset {} of buffer '{}' ({} bytes)", address - below->begin, below->name,
                       below->bytes);
  }
  if (below && (!above || past_end(*below) <= above->begin - address)) {
    return fmt::format("{} bytes past the end of buffer '{}' ({} bytes)", past_end(*below),
                       below->name, below->bytes);
  }
  return fmt::format("{} bytes before buffer '{}' ({} bytes)", above->begin - address, above->name,
                     above->bytes);
}

}  // namespace indexpool::sim::simt
