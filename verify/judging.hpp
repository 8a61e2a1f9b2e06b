// What judging an operation takes, apart from how it was run: shared by our own kernels and by
// those that ran elsewhere.
#pragma once

#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/checks/checks.hpp"

namespace indexpool::verify {

// Stored pools: "scale" and "quantiser", or "bound" where nothing is quantised.
std::vector<Check> pool_value_checks(const IndexerInputs& inputs, const StoredPools& stored,
                                     const reference::Pooled& expected, Mask mine);
// Quantised queries: "scale" and "quantiser".
std::vector<Check> query_value_checks(const IndexerInputs& inputs, const QueryOutput& output);

// The model of how a kernel accumulates dot products.
reference::Accumulation accumulation_model(kernels::Accumulation accumulation);
// Of the dtype in which dot products are taken, in units of the codes.
double smallest_normal(DType code);
// The dtype of the operands of the dot products.
DType operand_dtype(const NumericMode& mode);

}  // namespace indexpool::verify
