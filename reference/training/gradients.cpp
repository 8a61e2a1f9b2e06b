#include "indexpool/reference/training/gradients.hpp"

#include <cmath>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/scalar.hpp"
#include "indexpool/reference/training/combine.hpp"
#include "indexpool/reference/training/softmax_weights.hpp"
#include "indexpool/reference/training/term_weights.hpp"

namespace indexpool::reference::training {
namespace {

template <class T>
const std::vector<T>& array(const Arrays<T>& arrays, const char* name) {
  return arrays.find(name)->second;
}

template <class T>
Arrays<T> zeros_like(const Pooling& p, const Arrays<T>& arrays) {
  Arrays<T> zeros;
  for (const std::string& name : array_names(p.info()))
    zeros[name].assign(arrays.find(name)->second.size(), T(0));
  return zeros;
}

}  // namespace

template <class T>
std::vector<T> forward_weights(const Pooling& p, const Arrays<T>& arrays) {
  check_arrays(p, arrays);
  switch (p.info().rule) {
    case WeightRule::given:
      return array(arrays, "pool_weights");
    case WeightRule::role_softmax:
      return role_weights(p, arrays);
    case WeightRule::additive:
      return additive_weights(p, arrays);
    case WeightRule::gated:
      return gated_weights(p, arrays);
    case WeightRule::tfidf:
      return tfidf_weights(p, arrays);
    case WeightRule::channel_softmax:
      return channel_weights(p, arrays);
    case WeightRule::maximum:
      break;
  }
  throw InternalError("block_max has no weights");
}

template <class T>
std::vector<T> forward_pool(const Pooling& p, const Arrays<T>& arrays, const std::vector<T>& w) {
  std::vector<T> sums = weighted_sums(p, array(arrays, "vectors"), w);
  if (!p.has_norm()) return sums;
  return norm_and_rotate(p, array(arrays, "norm_weight"), std::move(sums));
}

template <class T>
WeightGradients<T> backward_to_weights(const Pooling& p, const Arrays<T>& arrays,
                                       const std::vector<T>& w, const std::vector<T>& grad_pooled) {
  WeightGradients<T> result;
  result.direct = zeros_like(p, arrays);
  const std::vector<T>& vectors = array(arrays, "vectors");
  const std::vector<T> sums = weighted_sums(p, vectors, w);
  std::vector<T> grad_sums = grad_pooled;
  if (p.has_norm()) {
    grad_sums = norm_and_rotate_backward(p, array(arrays, "norm_weight"), sums, grad_pooled,
                                         result.direct["norm_weight"]);
  }
  result.pool_weights = sums_backward(p, vectors, w, sums, grad_sums, result.direct["vectors"]);
  return result;
}

template <class T>
void backward_through_weights(const Pooling& p, const Arrays<T>& arrays, const std::vector<T>& w,
                              const std::vector<T>& grad_weights, Arrays<T>& gradients) {
  switch (p.info().rule) {
    case WeightRule::given:
      for (std::size_t i = 0; i < w.size(); ++i) gradients["pool_weights"][i] += grad_weights[i];
      return;
    case WeightRule::role_softmax:
      return role_backward(p, w, grad_weights, gradients);
    case WeightRule::additive:
      return additive_backward(p, arrays, grad_weights, gradients);
    case WeightRule::gated:
      return gated_backward(p, arrays, w, grad_weights, gradients);
    case WeightRule::tfidf:
      return tfidf_backward(p, arrays, grad_weights, gradients);
    case WeightRule::channel_softmax:
      return channel_backward(p, w, grad_weights, gradients);
    case WeightRule::maximum:
      break;
  }
  throw InternalError("block_max has no weights");
}

template <class T>
Arrays<T> backward(const Pooling& p, const Arrays<T>& arrays, const std::vector<T>& w,
                   const std::vector<T>& grad_pooled, BackwardOptions options) {
  check_arrays(p, arrays);
  WeightGradients<T> held = backward_to_weights(p, arrays, w, grad_pooled);
  if (options.clip_weight_gradients) clip_to_unit(held.pool_weights);
  backward_through_weights(p, arrays, w, held.pool_weights, held.direct);
  return std::move(held.direct);
}

template <class T>
std::int64_t clip_to_unit(std::vector<T>& gradient) {
  std::int64_t clipped = 0;
  for (T& x : gradient) {
    if (x >= T(-1) && x <= T(1)) continue;
    x = x > 0 ? T(1) : T(-1);
    ++clipped;
  }
  return clipped;
}

template <class T>
T clip_norm(Arrays<T>& gradients, const T& limit) {
  using std::sqrt;
  T square = 0;
  for (const auto& [name, values] : gradients)
    for (const T& x : values) square += x * x;
  T norm = sqrt(square);
  if (norm <= limit) return norm;
  const T scale = limit / norm;
  for (auto& [name, values] : gradients)
    for (T& x : values) x *= scale;
  return norm;
}

#define INDEXPOOL_INSTANTIATE(T)                                                                  \
  template std::vector<T> forward_weights(const Pooling&, const Arrays<T>&);                      \
  template std::vector<T> forward_pool(const Pooling&, const Arrays<T>&, const std::vector<T>&);  \
  template WeightGradients<T> backward_to_weights(const Pooling&, const Arrays<T>&,               \
                                                  const std::vector<T>&, const std::vector<T>&);  \
  template void backward_through_weights(const Pooling&, const Arrays<T>&, const std::vector<T>&, \
                                         const std::vector<T>&, Arrays<T>&);                      \
  template Arrays<T> backward(const Pooling&, const Arrays<T>&, const std::vector<T>&,            \
                              const std::vector<T>&, BackwardOptions);                            \
  template std::int64_t clip_to_unit(std::vector<T>&);                                            \
  template T clip_norm(Arrays<T>&, const T&);
INDEXPOOL_INSTANTIATE(double)
INDEXPOOL_INSTANTIATE(Quad)
#undef INDEXPOOL_INSTANTIATE

}  // namespace indexpool::reference::training
