// Our conversions against the host functions of the CUDA headers, where those are installed.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "indexpool/model/dtype.hpp"

#include "narrow_floats.hpp"

namespace indexpool {
namespace {

float toolkit_value(DType dtype, std::uint32_t code) {
  if (dtype == DType::bf16) {
    return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{static_cast<unsigned short>(code)}));
  }
  __half_raw half{static_cast<unsigned short>(code)};
  if (dtype != DType::f16) {
    half = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code),
                                   dtype == DType::e4m3 ? __NV_E4M3 : __NV_E5M2);
  }
  return __half2float(__half(half));
}

template <class Real>
std::uint32_t toolkit_fp8(__nv_fp8_interpretation_t kind, Real value) {
  if constexpr (std::is_same_v<Real, float>) {
    return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind);
  } else {
    return __nv_cvt_double_to_fp8(value, __NV_SATFINITE, kind);
  }
}

std::uint32_t toolkit_code(DType dtype, float value) {
  if (dtype == DType::bf16) return __nv_bfloat16_raw(__float2bfloat16_rn(value)).x;
  if (dtype == DType::f16) return __half_raw(__float2half_rn(value)).x;
  return toolkit_fp8(dtype == DType::e4m3 ? __NV_E4M3 : __NV_E5M2, value);
}

std::uint32_t toolkit_code(DType dtype, double value) {
  if (dtype == DType::bf16) return __nv_bfloat16_raw(__double2bfloat16(value)).x;
  if (dtype == DType::f16) return __half_raw(__double2half(value)).x;
  return toolkit_fp8(dtype == DType::e4m3 ? __NV_E4M3 : __NV_E5M2, value);
}

std::uint32_t our_code(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(dtype, bytes.data(), 0, value);
  std::uint32_t code = 0;
  std::memcpy(&code, bytes.data(), static_cast<std::size_t>(info(dtype).bytes));
  return code;
}

TEST(Toolkit, ReadsEveryCodeAsWeDo) {
  for (const Narrow& format : narrow_formats()) {
    for (std::uint32_t code = 0; code < format.codes(); ++code) {
      const float ours = format.to_float(code);
      const float theirs = toolkit_value(format.dtype, code);
      if (std::isnan(ours)) {
        ASSERT_TRUE(std::isnan(theirs)) << format.name << " code " << code;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs))
            << format.name << " code " << code;
      }
    }
  }
}

TEST(Toolkit, RoundsFloatsAroundEveryTieAsWeDo) {
  for (const Narrow& format : narrow_formats()) {
    for (const float value : floats_around_ties(format)) {
      ASSERT_EQ(format.from_float(value), toolkit_code(format.dtype, value))
          << format.name << " of " << value;
    }
  }
}

TEST(Toolkit, RoundsRandomFloatsAsWeDo) {
  for (const Narrow& format : narrow_formats()) {
    std::mt19937 random(7);
    for (int i = 0; i < 4'000'000; ++i) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      ASSERT_EQ(format.from_float(value), toolkit_code(format.dtype, value))
          << format.name << " of " << value;
    }
  }
}

TEST(Toolkit, RoundsRandomDoublesAsWeDo) {
  for (const Narrow& format : narrow_formats()) {
    const std::vector<double> values = ascending_values(format);
    std::mt19937_64 random(11);
    for (int i = 0; i < 1'000'000; ++i) {
      const double middle =
          (values[random() % format.largest] + values[random() % format.largest]) / 2;
      const double value = middle * (1 + static_cast<int>(random() % 5) * 0x1p-52 - 0x1p-51);
      ASSERT_EQ(our_code(format.dtype, value), toolkit_code(format.dtype, value))
          << format.name << " of " << value;
    }
  }
}

}  // namespace
}  // namespace indexpool
