// The golden format's stage "indexer": a case as it is, any batch and numeric mode, without
// projections and without answers. What goes out to kernels that run elsewhere, and reads back.
#pragma once

#include <string>
#include <vector>

#include "indexpool/model/case.hpp"
#include "indexpool/model/safetensors.hpp"

namespace indexpool {

// A tensor of the file. One table serves the writer, the reader and the documentation.
struct CaseTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::string meaning;
};
// keys, gate_scores, ape, queries, head_weights, sequences. `inputs` needs config, mode and
// sequences only.
std::vector<CaseTensor> indexer_case_tensors(const IndexerInputs& inputs);

// Further tensors such a file may hold (pages and schedule, verify/foreign/foreign.hpp).
const std::vector<std::string>& indexer_case_extras();

// Metadata "case" and the tensors above.
TensorFile indexer_case_file(const Case& test_case);

}  // namespace indexpool
