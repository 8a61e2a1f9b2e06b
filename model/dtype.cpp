#include "indexpool/model/dtype.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "indexpool/model/dtype_float.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// Rows in the order of DType. The widest 64-bit integer a double holds is 2^63 - 1024.
constexpr std::array<DTypeInfo, 10> dtypes{{
    {DType::f64, "f64", "F64", 8, true, 0x1p-53, 0x1.fffffffffffffp1023, 0x1p-1074},
    {DType::f32, "f32", "F32", 4, true, 0x1p-24, 0x1.fffffep127, 0x1p-149},
    {DType::bf16, "bf16", "BF16", 2, true, 0x1p-8, 0x1.fep127, 0x1p-133},
    {DType::f16, "f16", "F16", 2, true, 0x1p-11, 65504, 0x1p-24},
    {DType::e4m3, "e4m3", "F8_E4M3", 1, true, 0x1p-4, 448, 0x1p-9},
    {DType::e5m2, "e5m2", "F8_E5M2", 1, true, 0x1p-3, 57344, 0x1p-16},
    {DType::i64, "i64", "I64", 8, false, 0, 0x1.fffffffffffffp62, 0},
    {DType::i32, "i32", "I32", 4, false, 0, 2147483647, 0},
    {DType::i8, "i8", "I8", 1, false, 0, 127, 0},
    {DType::u8, "u8", "U8", 1, false, 0, 255, 0},
}};

template <class T>
T load(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* data, std::int64_t index, T value) {
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

// Round to nearest even (the default rounding mode, which nothing here changes), saturated to
// [low, largest of T]; NaN gives 0.
template <class T>
T integer_from(double value, T low) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(low)) return low;
  // For 64 bits the limit rounds up to 2^63, which does not fit either.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(rounded);
}

}  // namespace

const DTypeInfo& info(DType dtype) {
  const auto row = static_cast<std::size_t>(dtype);
  require(row < dtypes.size() && dtypes[row].dtype == dtype, "dtype is not in the table");
  return dtypes[row];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& row : dtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_safetensors_name(std::string_view name) {
  for (const DTypeInfo& row : dtypes) {
    if (row.safetensors_name == name) return row.dtype;
  }
  return std::nullopt;
}

std::int8_t i8_from_float(float value) { return integer_from<std::int8_t>(value, -127); }

double load_element(DType dtype, const std::byte* data, std::int64_t index) {
  switch (dtype) {
    case DType::f64:
      return load<double>(data, index);
    case DType::f32:
      return load<float>(data, index);
    case DType::bf16:
      return float_from_bf16(load<std::uint16_t>(data, index));
    case DType::f16:
      return float_from_f16(load<std::uint16_t>(data, index));
    case DType::e4m3:
      return float_from_e4m3(load<std::uint8_t>(data, index));
    case DType::e5m2:
      return float_from_e5m2(load<std::uint8_t>(data, index));
    case DType::i64:
      return static_cast<double>(load<std::int64_t>(data, index));
    case DType::i32:
      return load<std::int32_t>(data, index);
    case DType::i8:
      return load<std::int8_t>(data, index);
    case DType::u8:
      return load<std::uint8_t>(data, index);
  }
  throw InternalError("load_element: dtype is not in the table");
}

void store_element(DType dtype, std::byte* data, std::int64_t index, double value) {
  switch (dtype) {
    case DType::f64:
      return store(data, index, value);
    case DType::f32:
      return store(data, index, static_cast<float>(value));
    case DType::bf16:
    case DType::f16:
      return store(data, index, static_cast<std::uint16_t>(encode(narrow_format(dtype), value)));
    case DType::e4m3:
    case DType::e5m2:
      return store(data, index, static_cast<std::uint8_t>(encode(narrow_format(dtype), value)));
    case DType::i64:
      return store(data, index,
                   integer_from<std::int64_t>(value, std::numeric_limits<std::int64_t>::min()));
    case DType::i32:
      return store(data, index,
                   integer_from<std::int32_t>(value, std::numeric_limits<std::int32_t>::min()));
    case DType::i8:
      return store(data, index, integer_from<std::int8_t>(value, -127));
    case DType::u8:
      return store(data, index, integer_from<std::uint8_t>(value, 0));
  }
  throw InternalError("store_element: dtype is not in the table");
}

double round_to(DType dtype, double value) {
  std::byte storage[8];
  store_element(dtype, storage, 0, value);
  return load_element(dtype, storage, 0);
}

}  // namespace indexpool
