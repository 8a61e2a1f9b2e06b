// logits_mma: logits on the matrix cores of any device from sm_80 on, for caches of bf16, f16, int8
// and e4m3. Formula, shapes, mapping and precision: logits_tile.cuh. e4m3 codes become f16 without
// rounding, once per block (pools) and once per row and block (queries): sm_80 has no e4m3
// instruction, and sm_90's mma.sync does the same conversion inside every instruction.
#pragma once

#include "indexpool/kernels/checks.hpp"
#include "indexpool/kernels/instances.hpp"
#include "indexpool/kernels/logits_checks.hpp"
#include "indexpool/kernels/logits_declared.hpp"
#include "indexpool/kernels/logits_tile.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

// f32 is not multiplied on matrix cores: tf32 would round the operands.
constexpr std::optional<Multiply> portable_multiply(DType cache) {
  switch (cache) {
    case DType::bf16:
      return Multiply::bf16;
    case DType::f16:
      return Multiply::f16;
    case DType::i8:
      return Multiply::i8;
    case DType::e4m3:
      return Multiply::e4m3_as_f16;
    default:
      return std::nullopt;
  }
}

inline std::optional<std::string> logits_mma_unsupported(const OpArgs& any) {
  const auto* args = std::get_if<LogitsArgs>(&any);
  if (args == nullptr) return "it computes logits";
  if (!with_instance(args->shape, [](auto) {})) return no_instance(args->shape);
  if (!portable_multiply(args->shape.mode.cache))
    return "its matrix instructions take bf16, f16, i8 and e4m3 caches, not f32";
  return bad_logits(*args, mma_tile_pools);
}

inline void logits_mma_launch(const OpArgs& any, LaunchContext& context) {
  const auto& args = std::get<LogitsArgs>(any);
  with_instance(args.shape, [&]<class I>(I) {
    constexpr std::optional<Multiply> multiply = portable_multiply(I::cache);
    if constexpr (multiply.has_value())
      launch_mma_logits<multiply.value(), I::head_dim>(args, context);
  });
}

inline Work logits_mma_work(const OpArgs& any) {
  const auto& args = std::get<LogitsArgs>(any);
  return declared_mma_logits(args, portable_multiply(args.shape.mode.cache).value());
}

inline Accumulation logits_mma_accumulation(const OpArgs& any) {
  const auto& args = std::get<LogitsArgs>(any);
  return args.shape.mode.cache == DType::i8 ? Accumulation::mma_i8 : Accumulation::mma_f16_bf16;
}

extern const Kernel logits_mma;
const Kernel logits_mma = {"logits_mma",      INDEXPOOL_TARGET_NAME, logits_mma_unsupported,
                           logits_mma_launch, logits_mma_work,       logits_mma_accumulation};

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
