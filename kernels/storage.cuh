// Eight consecutive channels of a row: as they lie in memory (16 or 32 bytes) and as f32. A head
// of D channels is spread over D / 8 neighbouring lanes.
#pragma once

#include <cstdint>

#include "indexpool/kernels/device.cuh"
#include "indexpool/kernels/geometry.hpp"
#include "indexpool/model/dtype.hpp"

namespace indexpool::kernels::INDEXPOOL_TARGET {

consteval int bytes_of(DType dtype) {
  return dtype == DType::f32 ? 4 : dtype == DType::bf16 || dtype == DType::f16 ? 2 : 1;
}

template <DType T>
IP_DEVICE float float_from_16(std::uint16_t bits) {
  static_assert(T == DType::bf16 || T == DType::f16);
  if constexpr (T == DType::bf16) return ip::float_from_bf16(bits);
  return ip::float_from_f16(bits);
}

template <DType T>
IP_DEVICE std::uint16_t bits_16_from_float(float value) {
  static_assert(T == DType::bf16 || T == DType::f16);
  if constexpr (T == DType::bf16) return ip::bf16_from_float(value);
  return ip::f16_from_float(value);
}

// `value` rounded to the dtype and read back.
template <DType T>
IP_DEVICE float rounded_to(float value) {
  if constexpr (T == DType::f32)
    return value;
  else
    return float_from_16<T>(bits_16_from_float<T>(value));
}

// Eight elements of T as they lie in memory.
template <DType T>
struct Piece {
  static constexpr int vectors = channels_per_lane * bytes_of(T) / 16;
  ip::Vec16 vector[vectors];
};

// `at` is the byte address of the first of the eight elements.
template <DType T>
IP_DEVICE Piece<T> load_piece(const std::byte* at) {
  Piece<T> piece;
  for (int i = 0; i < Piece<T>::vectors; ++i)
    piece.vector[i] = ip::load_global(reinterpret_cast<const ip::Vec16*>(at) + i);
  return piece;
}

template <DType T>
IP_DEVICE void store_piece(std::byte* at, const Piece<T>& piece) {
  for (int i = 0; i < Piece<T>::vectors; ++i)
    ip::store_global(reinterpret_cast<ip::Vec16*>(at) + i, piece.vector[i]);
}

template <DType T>
IP_DEVICE void unpack(const Piece<T>& piece, float (&values)[channels_per_lane]) {
  for (int i = 0; i < Piece<T>::vectors; ++i) {
    const std::uint32_t words[4] = {piece.vector[i].x, piece.vector[i].y, piece.vector[i].z,
                                    piece.vector[i].w};
    for (int j = 0; j < 4; ++j) {
      if constexpr (T == DType::f32) {
        values[4 * i + j] = ip::float_of(words[j]);
      } else {
        values[2 * j] = float_from_16<T>(static_cast<std::uint16_t>(words[j] & 0xffff));
        values[2 * j + 1] = float_from_16<T>(static_cast<std::uint16_t>(words[j] >> 16));
      }
    }
  }
}

template <DType T>
IP_DEVICE Piece<T> pack(const float (&values)[channels_per_lane]) {
  Piece<T> piece;
  for (int i = 0; i < Piece<T>::vectors; ++i) {
    std::uint32_t words[4];
    for (int j = 0; j < 4; ++j) {
      if constexpr (T == DType::f32) {
        words[j] = ip::bits_of(values[4 * i + j]);
      } else {
        words[j] = bits_16_from_float<T>(values[2 * j]) |
                   static_cast<std::uint32_t>(bits_16_from_float<T>(values[2 * j + 1])) << 16;
      }
    }
    piece.vector[i] = ip::Vec16{words[0], words[1], words[2], words[3]};
  }
  return piece;
}

// A record whose size is a multiple of 16 bytes, 16 at a time.
template <class T>
IP_DEVICE T load_record(const T* from) {
  static_assert(sizeof(T) % 16 == 0 && alignof(T) >= 16);
  ip::Vec16 vectors[sizeof(T) / 16];
  for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i)
    vectors[i] = ip::load_global(reinterpret_cast<const ip::Vec16*>(from) + i);
  T record;
  __builtin_memcpy(&record, vectors, sizeof(T));
  return record;
}

template <class T>
IP_DEVICE void store_record(T* to, const T& record) {
  static_assert(sizeof(T) % 16 == 0 && alignof(T) >= 16);
  ip::Vec16 vectors[sizeof(T) / 16];
  __builtin_memcpy(vectors, &record, sizeof(T));
  for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i)
    ip::store_global(reinterpret_cast<ip::Vec16*>(to) + i, vectors[i]);
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
