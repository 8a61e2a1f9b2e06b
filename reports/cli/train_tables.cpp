#include "indexpool/reports/cli/train_tables.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace indexpool::cli {
namespace {

using reference::training::Epoch;
using reference::training::Evaluation;
using reference::training::Interval;

// "4:1", or "4:2" where a group keeps two pools.
std::string ratio_of(const TrainOptions& options) {
  return fmt::format("{}:{}", options.data.index_kpool, find_policy(options.policy).outputs);
}

std::string with_interval(const Interval& of) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", of.value, of.low, of.high);
}

enum class Against { better, worse, overlapping };
Against against_mean(const Training& training) {
  const Interval &learnt = training.epochs.back().held_out.recall, &mean = training.mean.recall;
  if (learnt.low > mean.high) return Against::better;
  return learnt.high < mean.low ? Against::worse : Against::overlapping;
}

reports::Cell number(double value, const char* format) {
  return {fmt::format(fmt::runtime(format), value), value};
}
reports::Cell count(std::int64_t value) { return {fmt::format("{}", value), value}; }

Check never_rises(const Training& training) {
  Check check;
  check.name = "objective";
  for (std::size_t i = 1; i < training.epochs.size(); ++i) {
    const double before = training.epochs[i - 1].objective, after = training.epochs[i].objective;
    ++check.compared;
    if (after <= before) continue;
    if (++check.violations == 1)
      check.reason =
          fmt::format("epoch {}: {:.9g} after {:.9g}", training.epochs[i].number, after, before);
  }
  check.status = check.violations > 0 ? Status::failed : Status::passed;
  if (check.violations == 0 &&
      training.epochs.back().objective == training.epochs.front().objective) {
    check.status = Status::untrusted;
    check.reason = "no step lowered the objective: nothing was learnt";
  }
  return check;
}

Check all_finite(const Training& training) {
  Check check;
  check.name = "finite";
  for (const auto& [name, values] : training.parameters) {
    for (const double x : values) {
      ++check.compared;
      if (std::isfinite(x)) continue;
      if (++check.violations == 1) check.reason = name + " holds a number that is not finite";
    }
  }
  check.status = check.violations > 0 ? Status::failed : Status::passed;
  return check;
}

// One value of each epoch against its number.
template <class Value>
reports::LineSeries series(std::string name, const Training& training, const Value& value) {
  reports::LineSeries out;
  out.name = std::move(name);
  for (const Epoch& epoch : training.epochs) {
    out.x.push_back(static_cast<double>(epoch.number));
    out.y.push_back(value(epoch));
  }
  return out;
}

reports::LineSeries recall_series(const TrainOptions& options, const Training& training) {
  auto out = series(options.policy, training,
                    [](const Epoch& epoch) { return epoch.held_out.recall.value; });
  for (const Epoch& epoch : training.epochs) {
    out.low.push_back(epoch.held_out.recall.low);
    out.high.push_back(epoch.held_out.recall.high);
  }
  return out;
}

reports::LineSeries mean_recall_series(const Training& training) {
  const Interval mean = training.mean.recall;
  auto out = series("mean pooling", training, [&](const Epoch&) { return mean.value; });
  out.low.assign(out.x.size(), mean.low);
  out.high.assign(out.x.size(), mean.high);
  return out;
}

std::vector<reports::LinePlot> plots_of(const TrainOptions& options, const Training& training) {
  const std::string k = fmt::format("recall@{}", options.recall_k);
  const auto objective =
      series("learnt from", training, [](const Epoch& e) { return e.objective; });
  const auto held = series("held out", training, [](const Epoch& e) { return e.held_out.loss; });
  const auto mean =
      series("mean pooling", training, [&](const Epoch&) { return training.mean.loss; });
  const auto entropy =
      series(options.policy, training, [](const Epoch& e) { return e.held_out.entropy; });
  const auto mass =
      series(options.policy, training, [](const Epoch& e) { return e.held_out.mass; });
  const auto mean_mass =
      series("mean pooling", training, [&](const Epoch&) { return training.mean.mass; });
  return {
      {"Loss, nats", "epoch", "loss", {objective, held, mean}, 0.0},
      {k + ", held out, with 95 % intervals",
       "epoch",
       k,
       {recall_series(options, training), mean_recall_series(training)}},
      {"Entropy of the weights in a group (1: a mean)", "epoch", "entropy", {entropy}, 0.0, 1.05},
      {"Unpooled distribution kept by the selected groups", "epoch", "mass", {mass, mean_mass}}};
}

// That the comparison with mean pooling is not one at equal size.
std::string kept_pools(const TrainOptions& options) {
  const std::int64_t outputs = find_policy(options.policy).outputs;
  if (outputs == 1) return "";
  return fmt::format(
      "{} keeps {} pools of every group where mean pooling keeps one; a group is selected by the "
      "sum of its pools' shares.\n",
      options.policy, outputs);
}

std::string how_trained(const TrainOptions& options) {
  const auto& data = options.data;
  std::string text = fmt::format(
      "Objective: KL divergence from the unpooled indexer's distribution over groups to the pooled "
      "one's, in nats, over {} sequences of {} tokens with {} queries each, pooled {} (seed {}).",
      data.sequences, data.tokens, data.queries, ratio_of(options), data.seed);
  if (options.two_stage)
    text += " Two stages: the weights stay as they start for the first half of the epochs.";
  if (options.objective.paths.any())
    text += " Quantised: " + to_string(options.objective.paths) +
            "; gradients are taken with noise in place of rounding, the objective with rounding.";
  if (options.f16_updates) text += " Updates are rounded to f16.";
  if (options.objective.dynamic_scaling)
    text += " Vectors are scaled by the median of their norms before pooling, and back after.";
  return text;
}

reports::Table parameter_table(const TrainOptions& options, const Training& training) {
  const auto geometry = geometry_of(options.data);
  reports::Table table;
  table.columns = {
      {"parameter", "parameter"}, {"shape", "shape"}, {"norm", "norm", true}, {"values", "values"}};
  for (const auto& [name, values] : training.parameters) {
    double square = 0;
    std::string text;
    for (const double x : values) square += x * x;
    for (std::size_t i = 0; i < values.size() && values.size() <= 16; ++i)
      text += fmt::format("{}{:.4g}", i == 0 ? "" : " ", values[i]);
    table.rows.push_back({name, to_string(parameter_shape(name, options.policy, geometry)),
                          number(std::sqrt(square), "{:.4g}"), text});
  }
  return table;
}

}  // namespace

reports::Table epoch_table(const TrainOptions& options, const Training& training) {
  const std::string recall = fmt::format("recall@{}", options.recall_k);
  reports::Table table;
  table.columns = {{"epoch", "epoch", true},
                   {"stage", "stage", true},
                   {"objective_nats", "objective", true},
                   {"held_out_loss_nats", "held out", true},
                   {"recall", recall, true},
                   {"recall_low", "low", true},
                   {"recall_high", "high", true},
                   {"mass", "mass", true},
                   {"entropy", "entropy", true},
                   {"gradient_norm", "gradient", true},
                   {"step", "step", true},
                   {"halvings", "halvings", true},
                   {"clipped_weight_gradients", "clipped", true},
                   {"clipped_values", "saturated", true},
                   {"lost_updates", "lost", true}};
  for (const Epoch& epoch : training.epochs) {
    const Evaluation& held = epoch.held_out;
    table.rows.push_back(
        {count(epoch.number), count(epoch.stage), number(epoch.objective, "{:.5f}"),
         number(held.loss, "{:.5f}"), number(held.recall.value, "{:.3f}"),
         number(held.recall.low, "{:.3f}"), number(held.recall.high, "{:.3f}"),
         number(held.mass, "{:.3f}"), number(held.entropy, "{:.3f}"),
         number(epoch.gradient_norm, "{:.3g}"), number(epoch.step, "{:.3g}"), count(epoch.halvings),
         count(epoch.clipped_weights), count(epoch.clipped_values), count(epoch.lost_updates)});
  }
  return table;
}

Record training_record(const TrainOptions& options, const Training& training,
                       const std::string& command) {
  const Epoch &first = training.epochs.front(), &last = training.epochs.back();
  Record record;
  record.case_name = "planted, " + ratio_of(options);
  record.op = "train";
  record.implementation = options.policy;
  record.reference = "unpooled indexer";
  record.environment.target = "reference";
  record.environment.version = INDEXPOOL_VERSION;
  record.seed = options.data.seed;
  record.repeat = command;
  Verdict& verdict = record.verdict;
  verdict.checks = {never_rises(training), all_finite(training)};
  verdict.status = worst(verdict.checks[0].status, verdict.checks[1].status);
  for (const Check& check : verdict.checks)
    if (verdict.reason.empty()) verdict.reason = check.reason;
  const auto put = [&](const std::string& name, const Evaluation& of) {
    record.values[name + "_loss_nats"] = of.loss;
    record.values[name + "_recall"] = of.recall.value;
    record.values[name + "_recall_low"] = of.recall.low;
    record.values[name + "_recall_high"] = of.recall.high;
    record.values[name + "_mass"] = of.mass;
    record.values[name + "_weight_entropy"] = of.entropy;
  };
  put("held_out", last.held_out);
  put("untrained", first.held_out);
  put("mean", training.mean);
  record.values["epochs"] = static_cast<double>(options.epochs);
  record.values["recall_k"] = static_cast<double>(options.recall_k);
  record.values["objective_first_nats"] = first.objective;
  record.values["objective_last_nats"] = last.objective;
  return record;
}

std::string outcome_text(const TrainOptions& options, const Training& training) {
  const Evaluation& learnt = training.epochs.back().held_out;
  const char* verdict = "the intervals overlap, so nothing is shown to be better";
  if (against_mean(training) == Against::better) verdict = "better, the intervals do not overlap";
  if (against_mean(training) == Against::worse) verdict = "worse, the intervals do not overlap";
  return fmt::format(
      "{}: recall@{} {} on {} held-out sequences, mean pooling {}: {}.\n{}Objective {:.5f} before, "
      "{:.5f} after {} epochs.\n",
      options.policy, options.recall_k, with_interval(learnt.recall), options.held_out,
      with_interval(training.mean.recall), verdict, kept_pools(options),
      training.epochs.front().objective, training.epochs.back().objective, options.epochs);
}

reports::TrainPage train_page_of(const TrainOptions& options, const Training& training,
                                 const std::string& command) {
  const Evaluation& learnt = training.epochs.back().held_out;
  const std::string k = fmt::format("recall@{}", options.recall_k);
  reports::TrainPage page;
  page.title = fmt::format("Training {} pooling, {}", options.policy, ratio_of(options));
  page.command = command;
  page.facts = {{with_interval(learnt.recall), k + ", " + options.policy},
                {with_interval(training.mean.recall), k + ", mean pooling"},
                {fmt::format("{:.3f} to {:.3f}", training.epochs.front().objective,
                             training.epochs.back().objective),
                 "objective in nats, before and after"},
                {fmt::format("{:.2f}", learnt.entropy), "entropy of the weights, 1 is a mean"}};
  page.notes = {
      outcome_text(options, training), how_trained(options),
      fmt::format("Recall: of the {0} tokens that score highest one by one, the share in the {0} "
                  "groups whose pools score highest. Intervals: bootstrap over sequences.",
                  options.recall_k),
      "Step rule: full batch, gradient norm clipped to 1, Adam; the step is halved until the "
      "objective is lower than before. It cannot rise."};
  page.plots = plots_of(options, training);
  page.epochs = epoch_table(options, training);
  page.parameters = parameter_table(options, training);
  return page;
}

TensorFile parameter_file(const TrainOptions& options, const Training& training,
                          const std::string& command) {
  const auto geometry = geometry_of(options.data);
  TensorFile file;
  file.metadata = {{"policy", options.policy},
                   {"index_kpool", fmt::format("{}", options.data.index_kpool)},
                   {"seed", fmt::format("{}", options.data.seed)},
                   {"command", command}};
  for (const auto& [name, values] : training.parameters) {
    Tensor tensor(DType::f64, parameter_shape(name, options.policy, geometry));
    std::copy(values.begin(), values.end(), tensor.as<double>().begin());
    file.tensors.emplace(name, std::move(tensor));
  }
  return file;
}

}  // namespace indexpool::cli
