// Forward and backward of the published poolings, as trained. The backward pass starts from the
// weights that the forward pass stored (article C) and does not compute them again.
//
// Templated on the scalar: double to train, binary128 to be checked against finite differences.
#pragma once

#include "indexpool/reference/training/operands.hpp"

namespace indexpool::reference::training {

// Pool weights as they are stored: [sets, m], or [G, m, D] where each channel has its own.
template <class T>
std::vector<T> forward_weights(const Pooling& pooling, const Arrays<T>& arrays);

// Pooled vectors [G, D] from stored weights. Where the weights' sum underflows: the mean.
template <class T>
std::vector<T> forward_pool(const Pooling& pooling, const Arrays<T>& arrays,
                            const std::vector<T>& stored_weights);

// Gradients of sum(grad_pooled * pooled) with the weights held fixed: with respect to the stored
// weights, and (in `direct`) to vectors and norm weight.
template <class T>
struct WeightGradients {
  std::vector<T> pool_weights;
  Arrays<T> direct;
};
template <class T>
WeightGradients<T> backward_to_weights(const Pooling& pooling, const Arrays<T>& arrays,
                                       const std::vector<T>& stored_weights,
                                       const std::vector<T>& grad_pooled);

// Gradients of sum(grad_weights * weights) with respect to every array the weights are made of,
// added to `gradients`.
template <class T>
void backward_through_weights(const Pooling& pooling, const Arrays<T>& arrays,
                              const std::vector<T>& stored_weights,
                              const std::vector<T>& grad_weights, Arrays<T>& gradients);

struct BackwardOptions {
  // Gradients of the weights into [-1, 1], as article C publishes it: after they are summed over
  // channels and groups, before they go on to what the weights are made of.
  bool clip_weight_gradients = false;
};
// Gradients of sum(grad_pooled * pooled), grad_pooled [G, D], with respect to every array.
template <class T>
Arrays<T> backward(const Pooling& pooling, const Arrays<T>& arrays,
                   const std::vector<T>& stored_weights, const std::vector<T>& grad_pooled,
                   BackwardOptions options = {});

// Into [-1, 1]; elements inside keep their bits. Returns how many were outside.
template <class T>
std::int64_t clip_to_unit(std::vector<T>& gradient);

// Scales all arrays so that their common Euclidean norm is at most `limit`; returns the norm
// before.
template <class T>
T clip_norm(Arrays<T>& gradients, const T& limit);

}  // namespace indexpool::reference::training
