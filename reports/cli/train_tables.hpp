// A training run as tables, a page, a record and a file of tensors.
#pragma once

#include <string>

#include "indexpool/model/record.hpp"
#include "indexpool/model/safetensors.hpp"
#include "indexpool/reference/training/train.hpp"
#include "indexpool/reports/table.hpp"
#include "indexpool/reports/train_page.hpp"

namespace indexpool::cli {

using reference::training::Training;
using reference::training::TrainOptions;

reports::Table epoch_table(const TrainOptions& options, const Training& training);
// Verdict: the objective never rose, and every number is finite.
Record training_record(const TrainOptions& options, const Training& training,
                       const std::string& command);
// Two sentences: recall beside mean pooling's, and whether the intervals lie apart.
std::string outcome_text(const TrainOptions& options, const Training& training);
reports::TrainPage train_page_of(const TrainOptions& options, const Training& training,
                                 const std::string& command);
// f64; the metadata names policy, seed and the line that repeats it.
TensorFile parameter_file(const TrainOptions& options, const Training& training,
                          const std::string& command);

}  // namespace indexpool::cli
