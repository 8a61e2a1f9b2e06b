// Trains a pooling so that the pooled indexer's distribution matches the unpooled one's.
//
// Step rule: full batch; gradients clipped to a common norm of 1 (article A), then Adam. The step
// is halved until the objective (with the quantisers as they round, updates in their format) is
// lower than before, at most 10 times; if no Adam step lowers it, the plain gradient is tried
// likewise and the moments start anew. A step that lowers nothing is not taken. So the objective
// never rises, by construction, whatever the gradient was taken with. After an epoch without a
// halving the step doubles, up to the learning rate it began with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "indexpool/reference/training/evaluate.hpp"

namespace indexpool::reference::training {

struct TrainOptions {
  std::string policy = "kpool";
  std::int64_t epochs = 30;
  // Sequences 0, 1, ... of the seed are learnt from; held-out ones follow behind them.
  PlantedOptions data;
  std::int64_t held_out = 48;  // sequences
  std::int64_t recall_k = 8;
  double learning_rate = 0.05;
  // Article A: in the first half of the epochs the weights stay as they start and only the logit
  // scale is learnt; then everything is.
  bool two_stage = false;
  // Article A: each update is rounded to f16 before it is added to the parameter, which itself is
  // kept in f64. Lost: all but 11 significant bits of an update, and updates below 2^-25
  // altogether.
  bool f16_updates = false;
  ObjectiveOptions objective;
};
// ConfigError naming the option.
void validate(const TrainOptions& options);

struct Epoch {
  std::int64_t number = 0;   // 0: before training
  int stage = 2;             // 1: weights fixed
  double objective = 0;      // on the sequences learnt from
  double gradient_norm = 0;  // before clipping, at the start of the epoch
  double step = 0;           // taken; 0 when none lowered the objective
  int halvings = 0;
  std::int64_t clipped_weights = 0, clipped_values = 0, lost_updates = 0;
  Evaluation held_out;
};
struct Training {
  Arrays<double> parameters;
  std::vector<Epoch> epochs;
  Evaluation mean;  // mean pooling on the same held-out sequences, the same paths quantised
};
// What `epochs` of the step rule make of `start`, with the seed, learning rate and rounding of the
// options; the data and the objective are those of `objective`.
Arrays<double> fit(const TrainOptions& options, const Objective& objective, Arrays<double> start);
// One after the other on one thread. `advance` is told each epoch as it ends.
Training train(const TrainOptions& options, const std::function<void(const Epoch&)>& advance = {});

}  // namespace indexpool::reference::training
