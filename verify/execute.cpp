#include "indexpool/verify/execute.hpp"

#include <cstring>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/far_target.hpp"

namespace indexpool::verify {

Lookup make_lookup(const Options& options, std::size_t choice) {
  const auto extra = options.extra_kernels;
  const std::string target = options.target;
  return [extra, target, choice](const kernels::OpArgs& args) -> const kernels::Kernel& {
    const auto rows = extra.empty() ? kernels::kernels() : extra;
    std::size_t left = choice;
    for (const kernels::Kernel& kernel : rows) {
      if (kernel.target == target && !kernel.unsupported(args) && left-- == 0) return kernel;
    }
    try {
      if (choice == 0) return kernels::find_kernel(extra.empty() ? target : "simt", args);
    } catch (const ConfigError& error) {
      throw Unsupported(error.what());
    }
    throw Unsupported("no further kernel");
  };
}

std::size_t kernels_of_an_operation(const Options& options) {
  return options.extra_kernels.empty() ? kernels::kernels().size() : 1;
}

std::vector<Way> ways(const Options& options) {
  using enum sim::simt::LaneOrder;
  if (options.target == "cuda") return {{"rerun", forward, false}};
  if (!options.all_lane_orders) return {{"rerun", forward, false}};
  return {{"rerun", forward, false}, {"lane_order", reverse, false}, {"lane_order", random, false}};
}

std::vector<std::byte> with_one_nan(const Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.bytes.begin(), buffer.bytes.end());
  constexpr std::size_t word = sizeof(std::uint32_t);
  for (std::size_t i = 0; buffer.floats > 0 && (i + 1) * word <= bytes.size(); ++i) {
    if (i % buffer.words >= buffer.floats) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * word, word);
    constexpr std::uint32_t infinity = 0x7f800000u, one_nan = 0x7fc00000u;
    if ((bits & 0x7fffffffu) > infinity) std::memcpy(bytes.data() + i * word, &one_nan, word);
  }
  return bytes;
}

std::unique_ptr<kernels::Target> make_target(const Options& options, const Way& way, bool count) {
  if (options.target == "cuda") return kernels::make_cuda_target();
  sim::simt::Options executor;
  executor.order = way.order;
  executor.matrix = way.matrix;
  executor.seed = options.seed;
  executor.count = count;
  auto target = kernels::make_simt_target(executor);
  return options.far ? make_far_target(std::move(target)) : std::move(target);
}

}  // namespace indexpool::verify
