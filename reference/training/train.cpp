#include "indexpool/reference/training/train.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/training/adam.hpp"
#include "indexpool/reference/training/gradients.hpp"

namespace indexpool::reference::training {
namespace {

constexpr double norm_limit = 1;  // article A
constexpr int most_halvings = 10;
constexpr std::uint64_t noise_stream = 3;

void require(bool holds, const char* what, std::int64_t found, const char* expected) {
  if (!holds) throw ConfigError(fmt::format("{}: found {}, expected {}", what, found, expected));
}

// From `parameters` by `step` times the direction, rounded as asked.
struct Candidate {
  Arrays<double> parameters;
  std::int64_t lost = 0;  // updates that the rounding made 0
};
Candidate moved(const Arrays<double>& parameters, const Arrays<double>& direction, double step,
                bool f16_updates) {
  Candidate to{parameters, 0};
  for (const auto& [name, towards] : direction) {
    std::vector<double>& values = to.parameters.find(name)->second;
    for (std::size_t i = 0; i < towards.size(); ++i) {
      const double exact = step * towards[i];
      const double update = f16_updates ? round_to(DType::f16, exact) : exact;
      if (exact != 0 && update == 0) ++to.lost;
      values[i] += update;
    }
  }
  project(to.parameters);
  return to;
}

// Training in progress: parameters, their objective, and the state of the step rule.
class Descent {
 public:
  Descent(const TrainOptions& options, const Objective& objective, Arrays<double> start)
      : options_(options),
        objective_(objective),
        parameters_(std::move(start)),
        value_(loss(objective, parameters_)),
        step_(options.learning_rate) {}

  const Arrays<double>& parameters() const { return parameters_; }
  double value() const { return value_; }
  void enter_stage() {
    adam_ = {};
    step_ = options_.learning_rate;
  }

  void advance(Epoch& epoch) {
    Gradient found = gradient(
        objective_, parameters_,
        {options_.data.seed, (noise_stream << 32) + static_cast<std::uint64_t>(epoch.number)});
    if (epoch.stage == 1) {
      for (auto& [name, values] : found.parameters)
        if (name != "logit_scale") values.assign(values.size(), 0);
    }
    epoch.clipped_weights = found.clipped_weights;
    epoch.clipped_values = found.clipped_values;
    epoch.gradient_norm = clip_norm(found.parameters, norm_limit);
    if (!descend(adam_.direction(found.parameters), epoch)) {
      adam_ = {};
      step_ = options_.learning_rate;
      for (auto& [name, values] : found.parameters)
        for (double& x : values) x = -x;
      descend(found.parameters, epoch);
    }
    epoch.objective = value_;
  }

 private:
  bool descend(const Arrays<double>& direction, Epoch& epoch) {
    for (int halvings = 0; halvings <= most_halvings; ++halvings, step_ /= 2) {
      Candidate to = moved(parameters_, direction, step_, options_.f16_updates);
      const double value = loss(objective_, to.parameters);
      if (!(value < value_)) continue;
      value_ = value;
      parameters_ = std::move(to.parameters);
      epoch.lost_updates = to.lost;
      epoch.step = step_;
      epoch.halvings += halvings;
      if (halvings == 0) step_ = std::min(2 * step_, options_.learning_rate);
      return true;
    }
    epoch.halvings += most_halvings;
    return false;
  }

  const TrainOptions& options_;
  const Objective& objective_;
  Arrays<double> parameters_;
  double value_, step_;
  Adam adam_;
};

constexpr std::int64_t mean_epochs = 20;  // for the one number it learns

// Mean pooling with its logit scale fitted on the same sequences: it loses by its weights only.
Evaluation evaluated_mean(const TrainOptions& options, const std::vector<Sequence>& seen,
                          const std::vector<Sequence>& held_out) {
  const Geometry geometry = geometry_of(options.data);
  const Objective objective = prepare("mean", geometry, seen, options.objective);
  Descent descent(options, objective, initial_parameters("mean", geometry, seen));
  for (std::int64_t number = 1; number <= mean_epochs; ++number) {
    Epoch epoch;
    epoch.number = number;
    descent.advance(epoch);
  }
  return evaluate(prepare("mean", geometry, held_out, options.objective), descent.parameters(),
                  options.recall_k, options.data.seed);
}

}  // namespace

Arrays<double> fit(const TrainOptions& options, const Objective& objective, Arrays<double> start) {
  Descent descent(options, objective, std::move(start));
  for (std::int64_t number = 1; number <= options.epochs; ++number) {
    Epoch epoch;
    epoch.number = number;
    descent.advance(epoch);
  }
  return descent.parameters();
}

void validate(const TrainOptions& options) {
  require_trainable(options.policy);
  const PlantedOptions& data = options.data;
  require(options.epochs >= 1 && options.epochs <= 10000, "epochs", options.epochs, "1 to 10000");
  require(data.index_kpool >= 2 && data.index_kpool <= 16, "ratio", data.index_kpool, "2 to 16");
  require(data.tokens % data.index_kpool == 0, "ratio", data.index_kpool,
          "a divisor of the number of tokens");
  const std::int64_t groups = data.tokens / data.index_kpool;
  require(options.recall_k >= 1 && options.recall_k < groups, "recall k", options.recall_k,
          "at least 1, fewer than there are groups");
  require(data.sequences >= 1, "sequences", data.sequences, "at least 1");
  require(options.held_out >= 2, "held-out sequences", options.held_out, "at least 2");
  if (!(options.learning_rate > 0))
    throw ConfigError(
        fmt::format("learning rate: found {}, expected above 0", options.learning_rate));
  if (!(options.objective.temperature > 0))
    throw ConfigError(
        fmt::format("temperature: found {}, expected above 0", options.objective.temperature));
}

Training train(const TrainOptions& options, const std::function<void(const Epoch&)>& advance) {
  validate(options);
  PlantedOptions unseen = options.data;
  unseen.sequences = options.held_out;
  const std::vector<Sequence> seen = planted_sequences(options.data, 0);
  const std::vector<Sequence> other = planted_sequences(unseen, options.data.sequences);
  const Geometry geometry = geometry_of(options.data);
  const Objective objective = prepare(options.policy, geometry, seen, options.objective);
  const Objective held_out = prepare(options.policy, geometry, other, options.objective);
  Descent descent(options, objective, initial_parameters(options.policy, geometry, seen));
  Training result;
  const std::int64_t fixed = options.two_stage ? (options.epochs + 1) / 2 : 0;
  for (std::int64_t number = 0; number <= options.epochs; ++number) {
    Epoch epoch;
    epoch.number = number;
    epoch.stage = number > fixed || fixed == 0 ? 2 : 1;
    epoch.objective = descent.value();
    if (number == fixed + 1) descent.enter_stage();
    if (number > 0) descent.advance(epoch);
    epoch.held_out = evaluate(held_out, descent.parameters(), options.recall_k, options.data.seed);
    if (advance) advance(epoch);
    result.epochs.push_back(std::move(epoch));
  }
  result.parameters = descent.parameters();
  result.mean = evaluated_mean(options, seen, other);
  return result;
}

}  // namespace indexpool::reference::training
