// A batch in a target's memory, and steps run over it: what a serving engine would do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"

#include "host_math.hpp"

namespace indexpool::kernels {

std::vector<std::string> mode_names();
Shape make_shape(const std::string& mode, std::int64_t head_dim, std::int64_t index_kpool);

// Rows of a batch as they arrive, [N, D] each.
struct Rows {
  std::vector<Head> keys, gate_scores;
};
Rows random_rows(const Shape& shape, std::int64_t count, std::uint64_t seed);
std::vector<Head> random_ape(const Shape& shape, std::uint64_t seed);
std::vector<std::int32_t> random_block_table(std::int64_t pages, std::int64_t first_page,
                                             std::uint64_t seed);

// One indexer cache on a target: pages, tail rings, and the steps that fill them. Pages are
// poisoned, page and tail strides padded; every step checks that the guards are intact and,
// on the executor, that the declared traffic equals the counted.
class Workbench {
 public:
  struct Sizes {
    std::int64_t pages = 1, states_per_page = 64, tail_blocks = 1, ring = 4;
    bool checksums = true;
    std::int64_t padding = 32;  // bytes between pages and between tail blocks
  };
  Workbench(const Shape& shape, const std::vector<Head>& ape, Sizes sizes,
            sim::simt::Options options = {});
  Workbench(const Shape& shape, const std::vector<Head>& ape, Sizes sizes,
            std::unique_ptr<Target> target);
  ~Workbench();

  // Row i of `rows` is row i of the step.
  void prefill(const Rows& rows, std::span<const StepRequest> step);
  void append(const Rows& rows, std::span<const StepRequest> step);

  std::vector<std::byte> pages();       // all bytes, padding included
  HostPool pool_at(std::int64_t slot);  // stored and scale only
  std::vector<PoolChecksum> checksums;  // of the last step
  Target& target() { return *target_; }

 private:
  std::byte* upload(const std::string& name, const void* from, std::int64_t bytes);
  void launch(const OpArgs& args);
  void free_step_buffers();

  Shape shape_;
  Sizes sizes_;
  PageLayout layout_;
  std::unique_ptr<Target> target_;
  PagedCache cache_;
  TailRing tail_;
  const float* ape_ = nullptr;
  std::vector<std::byte*> step_buffers_;
};

}  // namespace indexpool::kernels
