// Closing a pool, shared by prefill and decode so that both give the same bytes. Channel by
// channel, over the tokens j of the pool in order:
//   z_j = gate_j + ape_j,  e_j = exp(z_j - max z),
//   f32_accumulate:   y = (sum_j e_j k_j by fused multiply-adds) / (sum_j e_j)
//   storage_products: y = sum_j round(round(e_j / sum e) k_j), summed in f32
// then y is rounded to the pooled dtype, rotated and rounded again, quantised and stored. D / 8
// neighbouring lanes share a pool, eight channels each.
#pragma once

#include "indexpool/kernels/arithmetic.cuh"
#include "indexpool/kernels/paged.cuh"
#include "indexpool/kernels/pool_checksum.cuh"

namespace indexpool::kernels::INDEXPOOL_TARGET {

template <class I>
struct Softmax {
  float largest[channels_per_lane];
  float denominator[channels_per_lane];
  float sum[channels_per_lane];

  IP_DEVICE Softmax() {
    for (int i = 0; i < channels_per_lane; ++i) {
      largest[i] = ip::float_of(0xff800000u);  // -infinity
      denominator[i] = 0;
      sum[i] = 0;
    }
  }

  IP_DEVICE void see_score(const float (&z)[channels_per_lane]) {
    for (int i = 0; i < channels_per_lane; ++i) largest[i] = ip::max_number(largest[i], z[i]);
  }
  IP_DEVICE float exponential(const float (&z)[channels_per_lane], int i) const {
    return exp_f32(ip::sub(z[i], largest[i]));
  }
  IP_DEVICE void see_weight(const float (&z)[channels_per_lane]) {
    for (int i = 0; i < channels_per_lane; ++i)
      denominator[i] = ip::add(denominator[i], exponential(z, i));
  }
  IP_DEVICE void see_weighted_key(const float (&z)[channels_per_lane],
                                  const float (&key)[channels_per_lane]) {
    for (int i = 0; i < channels_per_lane; ++i) {
      const float e = exponential(z, i);
      denominator[i] = ip::add(denominator[i], e);
      sum[i] = ip::fma(e, key[i], sum[i]);
    }
  }
  IP_DEVICE void see_rounded_product(const float (&z)[channels_per_lane],
                                     const float (&key)[channels_per_lane]) {
    for (int i = 0; i < channels_per_lane; ++i) {
      const float weight = rounded_to<I::storage>(ip::div(exponential(z, i), denominator[i]));
      sum[i] = ip::add(sum[i], rounded_to<I::storage>(ip::mul(weight, key[i])));
    }
  }
  IP_DEVICE void result(float (&y)[channels_per_lane]) const {
    for (int i = 0; i < channels_per_lane; ++i)
      y[i] = I::rounding == PoolRounding::f32_accumulate ? ip::div(sum[i], denominator[i]) : sum[i];
  }
};

// Up to tokens_in_flight tokens, all loads issued before the first use. Source gives key(j) and
// gate(j), both Piece<storage>; ape is [index_kpool, D].
template <class I>
struct TokenBatch {
  Piece<I::storage> key[tokens_in_flight], gate[tokens_in_flight];
  Piece<DType::f32> ape[tokens_in_flight];
  int count;

  template <class Source>
  IP_DEVICE void load(const Source& source, const float* ape_at, int first, int kpool, bool active,
                      bool with_keys) {
    count = kpool - first < tokens_in_flight ? kpool - first : tokens_in_flight;
    IP_UNROLL
    for (int j = 0; j < tokens_in_flight; ++j) {
      key[j] = gate[j] = {};
      ape[j] = {};
      if (j < count && active) {
        gate[j] = source.gate(first + j);
        ape[j] = load_piece<DType::f32>(
            reinterpret_cast<const std::byte*>(ape_at + std::int64_t{I::head_dim} * (first + j)));
        if (with_keys) key[j] = source.key(first + j);
      }
    }
  }

  IP_DEVICE void scores(int j, float (&z)[channels_per_lane]) const {
    float bias[channels_per_lane];
    unpack<I::storage>(gate[j], z);
    unpack<DType::f32>(ape[j], bias);
    for (int i = 0; i < channels_per_lane; ++i) z[i] = ip::add(z[i], bias[i]);
  }

  // f(z, key) for each token in order.
  template <class F>
  IP_DEVICE void for_each(F&& f) const {
    IP_UNROLL
    for (int j = 0; j < tokens_in_flight; ++j) {
      if (j >= count) break;
      float z[channels_per_lane], values[channels_per_lane];
      scores(j, z);
      unpack<I::storage>(key[j], values);
      f(z, values);
    }
  }
};

enum class Pass { largest, weights, weighted_keys, rounded_products };
template <Pass P>
struct Constant {
  static constexpr Pass value = P;
};

template <Pass P, class I>
IP_DEVICE void apply(const TokenBatch<I>& batch, Softmax<I>& softmax) {
  batch.for_each([&](const float(&z)[channels_per_lane], const float(&key)[channels_per_lane]) {
    if constexpr (P == Pass::largest) softmax.see_score(z);
    if constexpr (P == Pass::weights) softmax.see_weight(z);
    if constexpr (P == Pass::weighted_keys) softmax.see_weighted_key(z, key);
    if constexpr (P == Pass::rounded_products) softmax.see_rounded_product(z, key);
  });
}

// f(pass as a constant) for each pass of the rounding rule, in order.
template <class I, class F>
IP_DEVICE void for_each_pass(F&& f) {
  f(Constant<Pass::largest>{});
  if constexpr (I::rounding == PoolRounding::f32_accumulate) {
    f(Constant<Pass::weighted_keys>{});
  } else {
    f(Constant<Pass::weights>{});
    f(Constant<Pass::rounded_products>{});
  }
}

// y of this lane's channels, before rounding to the pooled dtype. Fast: index_kpool is
// tokens_in_flight, and everything is read once; otherwise scores are read once per pass, keys in
// the last. `ape_at` points at this lane's first channel. Inactive lanes load nothing.
template <class I, bool Fast, class Source>
IP_DEVICE void pool_tokens(const Source& source, const float* ape_at, int kpool, bool active,
                           float (&y)[channels_per_lane]) {
  Softmax<I> softmax;
  TokenBatch<I> batch;
  if constexpr (Fast) {
    batch.load(source, ape_at, 0, tokens_in_flight, active, true);
    for_each_pass<I>([&](auto pass) { apply<pass.value>(batch, softmax); });
  } else {
    for_each_pass<I>([&](auto pass) {
      constexpr bool needs_keys =
          pass.value == Pass::weighted_keys || pass.value == Pass::rounded_products;
      for (int first = 0; first < kpool; first += tokens_in_flight) {
        batch.load(source, ape_at, first, kpool, active, needs_keys);
        apply<pass.value>(batch, softmax);
      }
    });
  }
  softmax.result(y);
}

// This lane's channels in the form of the cache: Quantised, or a Piece where nothing is.
template <class I>
IP_DEVICE auto as_stored(const float (&x)[channels_per_lane]) {
  if constexpr (I::quantised)
    return quantise<I::head_dim, I::cache, I::scale>(x);
  else
    return pack<I::cache>(x);
}

// Rounds, rotates, quantises and stores; `checksum` null: not wanted. All lanes of the warp take
// part, inactive ones store nothing.
template <class I>
IP_DEVICE void finish_pool(const float (&y)[channels_per_lane], const PagedCache& cache,
                           std::int64_t slot, PoolChecksum* checksum, int channel, bool active) {
  constexpr int D = I::head_dim;
  float x[channels_per_lane];
  for (int i = 0; i < channels_per_lane; ++i) x[i] = rounded_to<I::pooled>(y[i]);
  if constexpr (I::hadamard) {
    rotate<D>(x);
    for (int i = 0; i < channels_per_lane; ++i) x[i] = rounded_to<I::pooled>(x[i]);
  }
  const StateAddress to = state_address<D, I::cache>(cache, active ? slot : 0);
  const auto stored = as_stored<I>(x);
  if constexpr (I::quantised) {
    if (active) {
      ip::store_global(reinterpret_cast<Codes8*>(to.codes + channel), stored.codes);
      if (channel == 0) ip::store_global(to.scale, stored.scale);
    }
  } else {
    if (active) store_piece<I::cache>(to.codes + channel * bytes_of(I::cache), stored);
  }
  if (checksum != nullptr) {
    const PoolChecksum sums = checksum_of<I>(y, stored, channel);
    if (active && channel == 0) store_record(checksum, sums);
  }
}

}  // namespace indexpool::kernels::INDEXPOOL_TARGET
