#include "indexpool/verify/judging.hpp"

namespace indexpool::verify {

std::vector<Check> pool_value_checks(const IndexerInputs& inputs, const StoredPools& stored,
                                     const reference::Pooled& expected, Mask mine) {
  if (!inputs.mode.quantised()) return {check_pool_bound(inputs, stored, expected, mine)};
  return {check_pool_scale(inputs, stored, expected, mine),
          check_pool_quantiser(inputs, stored, expected, mine)};
}

std::vector<Check> query_value_checks(const IndexerInputs& inputs, const QueryOutput& output) {
  const reference::Bounded rotated = reference::rotate_queries(inputs);
  return {check_query_scale(inputs, output, rotated),
          check_query_quantiser(inputs, output, rotated)};
}

reference::Accumulation accumulation_model(kernels::Accumulation accumulation) {
  switch (accumulation) {
    case kernels::Accumulation::f32_fma:
      return reference::f32_any_order();
    case kernels::Accumulation::mma_f16_bf16:
      return reference::mma_f16_bf16();
    case kernels::Accumulation::mma_e4m3:
      return reference::mma_e4m3();
    case kernels::Accumulation::mma_i8:
      return reference::mma_i8();
  }
  return reference::f32_any_order();
}

// e4m3 codes may be converted to f16 first, by their bits, so that subnormal codes become subnormal
// f16.
double smallest_normal(DType code) {
  switch (code) {
    case DType::bf16:
      return 0x1p-126;
    case DType::f16:
      return 0x1p-14;
    case DType::e4m3:
      return 0x1p-6;
    default:
      return 0;
  }
}

DType operand_dtype(const NumericMode& mode) {
  return mode.quantised() ? mode.cache : mode.storage;
}

}  // namespace indexpool::verify
