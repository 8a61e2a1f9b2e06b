// How large a step is: what a prediction of one model on one device still depends on.
#pragma once

#include <cstdint>

namespace indexpool::step {

enum class Phase {
  decode,  // a new token of every sequence, and drafted ones that it verifies
  prefill  // a chunk of one prompt
};
const char* to_string(Phase phase);

// Rows are tokens that go through the layers together.
struct Size {
  std::int64_t sequences = 1;
  std::int64_t rows_per_sequence = 1;
  std::int64_t tokens = 1;  // of each sequence, this step's rows included

  std::int64_t rows() const { return sequences * rows_per_sequence; }
};

}  // namespace indexpool::step
