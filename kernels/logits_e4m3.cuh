// logits_e4m3: logits_mma with the matrix instruction for e4m3 itself (compute capability 8.9 and
// up). Formula, shapes, mapping: logits_tile.cuh. Another kernel rather than a branch of
// logits_mma, because it accumulates differently and moves different bytes.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/logits_checks.hpp"
#include "indexpool/kernels/logits_declared.hpp"
#include "indexpool/kernels/logits_tile.cuh"
#include "indexpool/model/error.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

inline std::optional<std::string> logits_e4m3_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<LogitsArgs>(&any);
  if (args == nullptr) return "it computes logits";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  if (args->shape.mode.cache != DType::e4m3) return "it takes e4m3 caches only";
  return bad_logits(*args, mma_tile_pools);
}

inline void logits_e4m3_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<LogitsArgs>(any);
  if (const int capability = ip_compute_capability(context); capability < 89)
    throw EnvironmentError(
        "logits_e4m3 needs a device of compute capability 8.9 or more, this one "
        "has " +
        std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
        "; logits_mma runs on any from 8.0 on");
  with_instance(args.shape, [&]<class I>(I) {
    if constexpr (I::cache == DType::e4m3)
      launch_mma_logits<Multiply::e4m3, I::head_dim>(args, context);
  });
}

inline Work logits_e4m3_work(const OpArgs& any) {
  return declared_mma_logits(std::get<LogitsArgs>(any), Multiply::e4m3);
}

inline Accumulation logits_e4m3_accumulation(const OpArgs&) { return Accumulation::mma_e4m3; }

extern const Kernel logits_e4m3;
const Kernel logits_e4m3 = {"logits_e4m3",      INDEXPOOL_TARGET_NAME, logits_e4m3_unsupported,
                            logits_e4m3_launch, logits_e4m3_work,      logits_e4m3_accumulation};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
