// Eigen matrices on the reference's scalar types. Internal to the layer.
#pragma once

#include <span>

#include <Eigen/Core>
#include <boost/multiprecision/eigen.hpp>

#include "indexpool/reference/scalar.hpp"

namespace indexpool::reference {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// Rows of doubles, converted exactly.
template <class T>
Matrix<T> matrix_of(std::span<const double> values, Eigen::Index rows, Eigen::Index columns) {
  Matrix<T> result(rows, columns);
  for (Eigen::Index i = 0; i < rows * columns; ++i) {
    result.data()[i] = T(values[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace indexpool::reference
