// Operands of the published forms of pooling as doubles, and what is refused. Internal to the
// layer.
#pragma once

#include <span>
#include <vector>

#include "indexpool/model/pooling.hpp"

namespace indexpool::reference {

// Shapes, the policy's own operands, and numbers where numbers are needed: ConfigError naming the
// operand and the place. Rows that no group reads are not looked at.
void check_operands(const PoolingInputs& inputs);
// Likewise of operands that come as plain values.
void check_size(const char* what, std::size_t found, std::int64_t expected);

// Row `row` of a [rows, columns] tensor.
std::vector<double> row_of(const Tensor& tensor, std::int64_t row);
// The group's present vectors, back to back: [m - absent, D]. `rows` are the vectors or what goes
// with them row by row.
std::vector<double> gather(const PoolingInputs& inputs, const Tensor& rows, std::int64_t group);

inline std::int64_t present(const PoolingInputs& inputs, std::int64_t group) {
  return inputs.index_kpool - inputs.groups[static_cast<std::size_t>(group)].absent;
}

}  // namespace indexpool::reference
