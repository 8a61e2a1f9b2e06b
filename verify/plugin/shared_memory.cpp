#include "indexpool/verify/plugin/shared_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"

namespace indexpool::verify::plugin {
namespace {

enum class Flush { end, begin };  // which side of the data touches its guard

// Places a buffer at `at`, which it moves beyond the guard that follows.
Segment place(std::uint64_t& at, std::uint64_t bytes, std::int64_t elements, Flush flush) {
  const std::uint64_t pages = round_up(bytes, page_bytes);
  // The end cannot be flush where the size would leave the start unaligned: slack takes the rest.
  const std::uint64_t lead = flush == Flush::end ? pages - round_up(bytes, data_alignment) : 0;
  const Segment segment{at, at + pages, at + lead, bytes, elements};
  at = segment.end + guard_bytes;
  return segment;
}

// Fills the segment tables; returns the size of it all.
std::uint64_t lay_out(const Request& request, Control& control) {
  std::uint64_t at = round_up(sizeof(Control), page_bytes) + guard_bytes;
  control.input_count = static_cast<std::int32_t>(request.inputs.size());
  control.output_count = static_cast<std::int32_t>(request.outputs.size());
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Input& input = request.inputs[i];
    if (input.present) control.inputs[i] = place(at, input.bytes.size(), 0, Flush::end);
  }
  for (int call = 0; call < call_count; ++call) {
    for (std::size_t i = 0; i < request.outputs.size(); ++i) {
      const Output& output = request.outputs[i];
      if (!output.present) continue;
      const std::int64_t elements = output.elements();
      control.outputs[call][i] =
          place(at, static_cast<std::uint64_t>(elements * info(output.dtype).bytes), elements,
                call == 0 ? Flush::end : Flush::begin);
    }
  }
  return at;
}

void describe(const Request& request, Control& control) {
  control.magic = control_magic;
  control.operation = request.operation;
  control.logit_scale = request.logit_scale;
  control.logits_stride = request.logits_stride;
  control.sizes = request.sizes;
  require(request.library.size() < sizeof(control.path), "the plugin's path fits the block");
  std::memcpy(control.path, request.library.c_str(), request.library.size() + 1);
}

}  // namespace

SharedMemory::SharedMemory(const Request& request) {
  require(request.inputs.size() <= most_inputs && request.outputs.size() <= most_outputs,
          "the buffers fit the control block");
  Control plan;
  bytes_ = lay_out(request, plan);
  descriptor_ = memfd_create("indexpool-plugin", MFD_CLOEXEC);
  if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) {
    const std::string why = std::strerror(errno);
    if (descriptor_ >= 0) close(descriptor_);
    throw EnvironmentError(
        fmt::format("could not make {} bytes of memory for a plugin: {}", bytes_, why));
  }
  base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (base_ == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    close(descriptor_);
    throw EnvironmentError(fmt::format("could not map {} bytes for a plugin: {}", bytes_, why));
  }
  lay_out(request, *new (base_) Control);
  describe(request, control());
  fill(request);
}

SharedMemory::~SharedMemory() {
  munmap(base_, bytes_);
  close(descriptor_);
}

std::span<std::byte> SharedMemory::range(std::uint64_t begin, std::uint64_t end) const {
  return {static_cast<std::byte*>(base_) + begin, static_cast<std::size_t>(end - begin)};
}

void SharedMemory::fill(const Request& request) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const auto bytes = request.inputs[i].bytes;
    if (!bytes.empty()) {
      std::memcpy(static_cast<std::byte*>(base_) + control().inputs[i].data, bytes.data(),
                  bytes.size());
    }
  }
  for (int call = 0; call < call_count; ++call) {
    for (std::size_t i = 0; i < request.outputs.size(); ++i) {
      const Segment& segment = control().outputs[call][i];
      std::ranges::fill(range(segment.begin, segment.end), guard_byte);
      std::ranges::fill(range(segment.data, segment.data + segment.bytes), poison_of_call[call]);
    }
  }
}

std::span<const std::byte> SharedMemory::output(int call, std::size_t index) const {
  const Segment& segment = control().outputs[call][index];
  return range(segment.data, segment.data + segment.bytes);
}

std::span<const std::byte> SharedMemory::slack(int call, std::size_t index, int side) const {
  const Segment& segment = control().outputs[call][index];
  return side == 0 ? range(segment.begin, segment.data)
                   : range(segment.data + segment.bytes, segment.end);
}

}  // namespace indexpool::verify::plugin
