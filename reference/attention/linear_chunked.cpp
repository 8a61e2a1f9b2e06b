// Linear attention in chunks, by the WY form.
//
// Errors. Let u~_i be what an implementation computes for row i of U. The state s^_i that exact
// arithmetic would make of these, s^_i = diag(alpha_i) s^_(i-1) + k_i u~_i from the stored state,
// obeys the recurrence of linear_head.hpp with local error k_i r_i, where
//   r_i = u~_i - beta_i (v_i - k_i . diag(alpha_i) s^_(i-1)) = ((I + A) u~ - b)_i
// is the residual of the triangular system (b its exact right side from the stored state). So
// |e_i| <= a_i |e_(i-1)| + |r_i|. With A~ computed to within dA, and u~ = T~ b~ by an inverse T~
// that substitution made, |(I + A~) T~ - I| <= gamma_n |I + A~| |T~| (Higham, Accuracy and
// Stability, 14.2), so
//   |r| <= dA |u~| + (|I + A| + dA) |T~| (gamma_n b_ + error of b~ and of the product),
// b_ the magnitude of b. Substituting into the right side at once stays within this. |T~| is at
// most |T| + Z |T~| with Z = |T| (gamma_n (|I + A| + dA) + dA), so for x >= 0
//   |T~| x <= |T| x + z / (1 - z) max(|T| x), z the largest row sum of Z.
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/attention/linear_head.hpp"

namespace indexpool::reference {
namespace {

// exp(G_i - G_j) of every channel, and how far an implementation's may be off.
template <class T>
struct Decay {
  Vector<T> factor, error;
};

// What all value channels of a chunk share; rows and columns are tokens of the chunk.
template <class T>
struct ChunkMatrices {
  std::vector<Decay<T>> since_start, to_end;   // F_i0, F_nj
  Matrix<T> a, a_error;                        // A, strictly lower
  Matrix<T> read, read_magnitude, read_error;  // of queries and keys, lower; without the scale
  Matrix<T> inverse;                           // (I + A)^-1
  T inverse_slack{};                           // z / (1 - z); infinite if z >= 1
};

// A value channel of the state before a chunk, and a bound on the elements of a stored one.
template <class T>
struct StateColumn {
  Vector<T> value, most;
};

// b, its magnitude, and how far an implementation's may be off.
template <class T>
struct RightSide {
  Vector<T> value, magnitude, error;
};

template <class T>
class Chunk {
 public:
  Chunk(const LinearHead<T>& head, Eigen::Index first, Eigen::Index count)
      : head_(head), first_(first), n_(count), keys_(head.k.cols()) {
    accumulated_ = Matrix<T>::Zero(n_ + 1, keys_);
    for (Eigen::Index i = 0; i < n_; ++i)
      accumulated_.row(i + 1) = accumulated_.row(i) + head.log_decay.row(first + i);
    products();
    invert();
  }
  // Outputs [n] of a value channel, and the state after the chunk.
  std::vector<Within<T>> advance(LinearState<T>& state, Eigen::Index column) const;

 private:
  Decay<T> decay(Eigen::Index i, Eigen::Index j) const;
  void products();
  void invert();
  Vector<T> through_inverse(const Vector<T>& x) const;  // bound on |T~| x
  RightSide<T> right_side(const StateColumn<T>& before, Eigen::Index column) const;
  Vector<T> residuals(const RightSide<T>& right, Vector<T>& updates) const;
  Within<T> output(Eigen::Index i, const StateColumn<T>& before, const Vector<T>& u,
                   const Vector<T>& updates, const T& carried) const;
  T write(const StateColumn<T>& before, const Vector<T>& u, const Vector<T>& updates,
          Vector<T>& state) const;
  double roundings(Eigen::Index terms) const { return gamma(static_cast<double>(terms)); }

  const LinearHead<T>& head_;
  Eigen::Index first_, n_, keys_;
  Matrix<T> accumulated_;  // G_0 = 0 ... G_n
  ChunkMatrices<T> m_;
};

// A difference of accumulated decays is off by u |G_i| for each addition between j and i in
// sequence, or by the depth of a scan at both ends; then as any exponential, perhaps two.
template <class T>
Decay<T> Chunk<T>::decay(Eigen::Index i, Eigen::Index j) const {
  using std::abs;
  using std::exp;
  const double depth = std::ceil(std::log2(static_cast<double>(n_)));
  const double additions = std::max(static_cast<double>(i - j), 2 * depth) + 1;
  Decay<T> result = {Vector<T>(keys_), Vector<T>(keys_)};
  for (Eigen::Index c = 0; c < keys_; ++c) {
    const T difference = accumulated_(i, c) - accumulated_(j, c);
    const T factor = exp(difference);
    const T eta = u32 * (additions * abs(accumulated_(i, c)) +
                         argument_roundings * abs(difference) + 2 * 2 * exp_ulps + 1);
    result.factor(c) = factor;
    result.error(c) = factor * eta * (1 + eta);
    if (eta > T(0.5)) result.error(c) = std::numeric_limits<T>::infinity();
    if (factor < T(2 * f32_smallest_normal)) result.error(c) += T(2 * f32_smallest_normal);
  }
  return result;
}

template <class T>
void Chunk<T>::products() {
  const double operands = compound(head_.norm_error, head_.norm_error);
  const T relative = compound(operands, roundings(keys_ + 3));
  m_.a = m_.a_error = m_.read = m_.read_magnitude = m_.read_error = Matrix<T>::Zero(n_, n_);
  for (Eigen::Index i = 0; i < n_; ++i) {
    m_.since_start.push_back(decay(i + 1, 0));
    m_.to_end.push_back(decay(n_, i + 1));
    const Vector<T> q = head_.q.row(first_ + i).transpose(),
                    k = head_.k.row(first_ + i).transpose();
    for (Eigen::Index j = 0; j <= i; ++j) {
      const auto f = decay(i + 1, j + 1);
      const Vector<T> other = head_.k.row(first_ + j).transpose();
      const Vector<T> qk = q.cwiseProduct(other), kk = k.cwiseProduct(other);
      const Vector<T> off = f.error * (1 + relative) + f.factor * relative;
      m_.read(i, j) = qk.dot(f.factor);
      m_.read_magnitude(i, j) = qk.cwiseAbs().dot(f.factor + f.error);
      m_.read_error(i, j) = qk.cwiseAbs().dot(off) + T(keys_ * f32_subnormal);
      if (j == i) continue;
      m_.a(i, j) = head_.beta(first_ + i) * kk.dot(f.factor);
      m_.a_error(i, j) = head_.beta(first_ + i) * kk.cwiseAbs().dot(off) + T(keys_ * f32_subnormal);
    }
  }
}

template <class T>
void Chunk<T>::invert() {
  m_.inverse = Matrix<T>::Identity(n_, n_);
  for (Eigen::Index i = 1; i < n_; ++i)
    m_.inverse.row(i) -= m_.a.row(i).head(i) * m_.inverse.topRows(i);
  const Matrix<T> most = m_.a.cwiseAbs() + m_.a_error + Matrix<T>::Identity(n_, n_);
  const Matrix<T> z = m_.inverse.cwiseAbs() * (most * T(roundings(n_)) + m_.a_error);
  const T largest = z.rowwise().sum().maxCoeff();
  m_.inverse_slack =
      largest < T(0.5) ? T(largest / (1 - largest)) : T(std::numeric_limits<T>::infinity());
}

template <class T>
Vector<T> Chunk<T>::through_inverse(const Vector<T>& x) const {
  Vector<T> result = m_.inverse.cwiseAbs() * x;
  return result.array() + m_.inverse_slack * result.maxCoeff();
}

// The right side b = diag(beta) (V - (K F_i0) S) of a value channel.
template <class T>
RightSide<T> Chunk<T>::right_side(const StateColumn<T>& before, Eigen::Index column) const {
  using std::abs;
  const double operand = compound(head_.norm_error, roundings(keys_ + 4));
  RightSide<T> right = {Vector<T>(n_), Vector<T>(n_), Vector<T>(n_)};
  for (Eigen::Index i = 0; i < n_; ++i) {
    const Vector<T> k = head_.k.row(first_ + i).transpose();
    const Decay<T>& f = m_.since_start[static_cast<std::size_t>(i)];
    const T beta = head_.beta(first_ + i), v = head_.v(first_ + i, column);
    right.value(i) = beta * (v - k.cwiseProduct(f.factor).dot(before.value));
    const T magnitude = k.cwiseAbs().cwiseProduct(f.factor).dot(before.most);
    const T off = k.cwiseAbs().cwiseProduct(f.error).dot(before.most);
    right.magnitude(i) = beta * (abs(v) + magnitude + off);
    right.error(i) = beta * (off * (1 + operand) + operand * magnitude) + T(keys_ * f32_subnormal);
  }
  return right;
}

// |r|; `updates` becomes a bound on |u~|.
template <class T>
Vector<T> Chunk<T>::residuals(const RightSide<T>& right, Vector<T>& updates) const {
  const double product = roundings(n_ + keys_ + 6);
  const Vector<T> off =
      right.error * (1 + product) + right.magnitude * T(compound(product, roundings(n_)));
  const Vector<T> off_updates = through_inverse(off);
  updates = through_inverse(right.magnitude) + off_updates;
  const Matrix<T> most = m_.a.cwiseAbs() + m_.a_error + Matrix<T>::Identity(n_, n_);
  return m_.a_error * updates + most * off_updates;
}

// scale (q_i F_i0) S + R_i u, with the error of S carried to token i.
template <class T>
Within<T> Chunk<T>::output(Eigen::Index i, const StateColumn<T>& before, const Vector<T>& u,
                           const Vector<T>& updates, const T& carried) const {
  using std::abs;
  const T reading =
      compound(compound(head_.norm_error, head_.norm_error), roundings(keys_ + n_ + 6));
  const Vector<T> q = head_.q.row(first_ + i).transpose();
  const Decay<T>& f = m_.since_start[static_cast<std::size_t>(i)];
  const T value = q.cwiseProduct(f.factor).dot(before.value) + m_.read.row(i).dot(u);
  const T of_state = q.cwiseAbs().cwiseProduct(f.factor).dot(before.most) * reading +
                     q.cwiseAbs().cwiseProduct(f.error).dot(before.most) * (1 + reading);
  const Vector<T> of_updates =
      m_.read_error.row(i) * (1 + reading) + m_.read_magnitude.row(i) * reading;
  const T rounding = of_state + of_updates.dot(updates);
  return {head_.scale * value,
          abs(head_.scale) * (q.norm() * carried + rounding) + T((keys_ + n_) * f32_subnormal)};
}

// S = diag(F_n0) S + sum_j (k_j F_nj) u_j; returns the 2-norm of what writing it may be off.
template <class T>
T Chunk<T>::write(const StateColumn<T>& before, const Vector<T>& u, const Vector<T>& updates,
                  Vector<T>& state) const {
  const double writing = compound(head_.norm_error, roundings(n_ + 3));
  const Decay<T>& through = m_.since_start.back();
  state = through.factor.cwiseProduct(before.value);
  Vector<T> off =
      (through.factor * writing + through.error * (1 + writing)).cwiseProduct(before.most);
  for (Eigen::Index j = 0; j < n_; ++j) {
    const Decay<T>& f = m_.to_end[static_cast<std::size_t>(j)];
    const Vector<T> k = head_.k.row(first_ + j).transpose();
    state += k.cwiseProduct(f.factor) * u(j);
    off += k.cwiseAbs().cwiseProduct(f.factor * writing + f.error * (1 + writing)) * updates(j);
  }
  return off.norm() + T((n_ + 1) * keys_ * f32_subnormal);
}

template <class T>
std::vector<Within<T>> Chunk<T>::advance(LinearState<T>& state, Eigen::Index column) const {
  using std::exp;
  StateColumn<T> before = {state.state.col(column), {}};
  before.most = before.value.cwiseAbs().array() + state.error(column);
  const RightSide<T> right = right_side(before, column);
  Vector<T> updates(n_);
  const Vector<T> residual = residuals(right, updates);
  const Vector<T> u = m_.inverse * right.value;
  T error = state.error(column);
  std::vector<Within<T>> outputs;
  for (Eigen::Index i = 0; i < n_; ++i) {
    error = exp(T(head_.log_decay.row(first_ + i).maxCoeff())) * error + residual(i);
    outputs.push_back(output(i, before, u, updates, error));
  }
  Vector<T> next(keys_);
  state.error(column) = error + write(before, u, updates, next);
  state.state.col(column) = next;
  return outputs;
}

template <class T>
LinearAttention chunked(const LinearAttentionInputs& inputs, std::int64_t chunk) {
  const std::int64_t tokens = inputs.queries.dim(0), heads = inputs.queries.dim(1);
  const std::int64_t values = inputs.values.dim(2);
  LinearAttention result = {Bounded(inputs.values.shape()), Bounded(inputs.state.shape())};
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto head = linear_head<T>(inputs, h);
    auto state = linear_state<T>(inputs, h);
    if (head.open) state.error.setConstant(std::numeric_limits<T>::infinity());
    for (std::int64_t first = 0; first < tokens; first += chunk) {
      const Chunk<T> part(head, first, std::min(chunk, tokens - first));
      for (std::int64_t j = 0; j < values; ++j) {
        std::int64_t t = first;
        for (const Within<T>& output : part.advance(state, j))
          store_within(result.outputs, (t++ * heads + h) * values + j, output);
      }
    }
    store_state(result.state, h, state);
  }
  return result;
}

}  // namespace

LinearAttention linear_attention_chunked(const LinearAttentionInputs& inputs, std::int64_t chunk,
                                         Precision precision) {
  validate(inputs);
  if (chunk < 1 || chunk > 1024)
    throw ConfigError(fmt::format("chunk: found {}, expected 1 to 1024 tokens", chunk));
  return precision == Precision::binary64 ? chunked<double>(inputs, chunk)
                                          : chunked<Quad>(inputs, chunk);
}

}  // namespace indexpool::reference
