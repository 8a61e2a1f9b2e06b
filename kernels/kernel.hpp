// The table of implementations: every kernel on every target it was built for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/random_fill.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/traffic.hpp"
#include "indexpool/sim/simt/session.hpp"

namespace indexpool::kernels {

// Where a launch goes: the executor, or a CUDA stream.
struct LaunchContext {
  sim::simt::Session* simt = nullptr;
  void* stream = nullptr;  // cudaStream_t
};

// How a kernel accumulates q . k, so that the reference can bound it (reference/logits.hpp).
enum class Accumulation { f32_fma, mma_f16_bf16, mma_e4m3, mma_i8 };

struct Kernel {
  std::string_view name;    // "pool", "logits_mma", ...
  std::string_view target;  // "simt", "cuda", or a mutant's name
  // Empty when the kernel takes these arguments, else why not.
  std::optional<std::string> (*unsupported)(const OpArgs& args);
  void (*launch)(const OpArgs& args, LaunchContext& context);
  Work (*work)(const OpArgs& args);  // declared traffic and operations of one launch
  // How the logits kernels accumulate q . k for these arguments; null: as f32_fma.
  Accumulation (*accumulation)(const OpArgs& args) = nullptr;
};

// In the order of the list in kernels/CMakeLists.txt; CUDA rows only when built with a toolkit.
std::span<const Kernel> kernels();
// The first kernel for `args` on `target` that takes them; ConfigError naming each refusal.
const Kernel& find_kernel(std::string_view target, const OpArgs& args);
const Kernel* find_kernel(std::string_view target, std::string_view name);  // null if absent

// Global memory and timing of a target.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;
  virtual Environment environment() const = 0;
  // 90 for a device of compute capability 9.0; 0 where there is none.
  virtual int compute_capability() const { return 0; }
  virtual std::byte* allocate(std::string name, std::int64_t bytes, std::byte poison,
                              bool sparse = false) = 0;
  virtual void release(std::byte* buffer) = 0;
  virtual void upload(std::byte* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const std::byte* from, std::int64_t bytes) = 0;
  // Whole words of 4 bytes. The host's, uploaded in pieces, unless a target makes them itself.
  virtual void fill_random(std::byte* to, std::int64_t bytes, const RandomFill& fill);
  virtual std::string check_guards() = 0;  // empty: intact
  virtual LaunchContext& context() = 0;
  // The arguments as a launch gets them: a target may lie otherwise than its buffers say.
  virtual OpArgs placed(const OpArgs& args) { return args; }
  virtual void synchronize() = 0;
  // Median and spread of `samples` timed runs of `body`; with `cold_l2` the L2 is flushed before
  // each. Empty on targets whose time means nothing (simt).
  virtual std::optional<Measurement> measure(const std::function<void()>& body, int samples,
                                             bool cold_l2) = 0;
  // Time of one of `launches` runs of `body` back to back in a CUDA graph: median and spread of
  // `samples` replays, each divided by `launches`. Empty on targets without graphs.
  virtual std::optional<Measurement> replay(const std::function<void()>& body, int launches,
                                            int samples) {
    static_cast<void>(body), static_cast<void>(launches), static_cast<void>(samples);
    return std::nullopt;
  }
};
std::unique_ptr<Target> make_simt_target(sim::simt::Options options = {});
// Throws EnvironmentError naming what is missing (no toolkit at build time, no device).
std::unique_ptr<Target> make_cuda_target();

}  // namespace indexpool::kernels
