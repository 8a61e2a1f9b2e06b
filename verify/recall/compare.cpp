#include "indexpool/verify/recall/compare.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/recall/rank_pools.hpp"

namespace indexpool::verify::recall {
namespace {

namespace training = reference::training;
using training::bootstrap;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

struct Job {
  std::int64_t ratio = 0;
  const Policy* policy = nullptr;
  Form form = Form::fixed;
};
// Values of each query, those of a unit in one row.
using Units = std::vector<std::vector<double>>;
struct Outcome {
  Row row;
  Units recall, f1, mass;
};

struct Bench {
  const DataSet& data;
  const CompareOptions& options;
  std::int64_t k = 0;
  std::vector<Unpooled> held_out;
};

std::vector<std::int64_t> selected_tokens(const Bench& bench, const Job& job,
                                          const std::vector<double>& scores,
                                          const Unpooled& unpooled, std::int64_t query) {
  if (job.policy->name == "oracle") return unpooled.best[size(query)];
  const std::int64_t pools = unpooled.tokens / job.ratio;
  const auto row = std::span(scores).subspan(size(query * pools), size(pools));
  const std::int64_t wanted = bench.options.pools;
  return tokens_of(
      reference::select(row, wanted > 0 ? wanted : (bench.k + job.ratio - 1) / job.ratio),
      job.ratio);
}

Ranking ranking_of(const Bench& bench, const Job& job) {
  Ranking ranking;
  for (const Unpooled& unpooled : bench.held_out) {
    if (job.policy->name == "block_max")
      ranking.scores.push_back(largest_scores(unpooled, job.ratio));
    else if (job.policy->name == "best_pools")
      ranking.scores.push_back(best_counts(unpooled, job.ratio));
    else if (job.form == Form::unpooled)
      ranking.scores.emplace_back();
  }
  if (job.form == Form::unpooled) return ranking;
  return rank_by_pooling(bench.data, bench.options, *job.policy, job.form, job.ratio);
}

Outcome run(const Bench& bench, const Job& job) {
  const Ranking ranking = ranking_of(bench, job);
  Outcome out;
  out.row.policy = job.policy->name;
  out.row.form = job.form;
  out.row.ratio = job.ratio;
  out.row.k = bench.k;
  out.row.loss_before = ranking.loss_before;
  out.row.loss_after = ranking.loss_after;
  for (std::size_t s = 0; s < bench.held_out.size(); ++s) {
    const Unpooled& unpooled = bench.held_out[s];
    out.row.ties += unpooled.ties;
    for (std::int64_t q = 0; q < bench.data.geometry.queries; ++q, ++out.row.queries) {
      if (q % bench.data.queries_per_unit == 0)
        for (Units* units : {&out.recall, &out.f1, &out.mass}) units->emplace_back();
      const auto tokens = selected_tokens(bench, job, ranking.scores[s], unpooled, q);
      const Kept found = kept(unpooled, q, tokens);
      out.row.selected = std::ssize(tokens);
      out.recall.back().push_back(found.recall);
      out.f1.back().push_back(found.f1);
      out.mass.back().push_back(found.mass);
    }
  }
  out.row.recall = bootstrap(out.recall, bench.options.seed);
  out.row.f1 = bootstrap(out.f1, bench.options.seed);
  out.row.mass = bootstrap(out.mass, bench.options.seed);
  return out;
}

std::vector<Job> jobs_of(const CompareOptions& options) {
  std::vector<Job> jobs;
  const auto wanted = [&](const std::string& name) {
    if (options.policies.empty() || name == "oracle" || name == "mean") return true;
    return std::ranges::find(options.policies, name) != options.policies.end();
  };
  for (const std::int64_t ratio : options.ratios) {
    for (const Policy& policy : compared_policies()) {
      if (!wanted(policy.name)) continue;
      jobs.push_back({ratio, &policy, policy.learns ? Form::untrained : policy.form});
      if (policy.learns) jobs.push_back({ratio, &policy, Form::trained});
    }
  }
  return jobs;
}

// Each thread takes the next job that nobody has; what is made of it has a place of its own.
std::vector<Outcome> run_all(const Bench& bench, const std::vector<Job>& jobs,
                             const std::function<void(std::int64_t, std::int64_t)>& advance) {
  std::vector<Outcome> outcomes(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::int64_t done = 0;
  std::mutex one_at_a_time;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      try {
        outcomes[i] = run(bench, jobs[i]);
        const std::lock_guard lock(one_at_a_time);
        if (advance) advance(++done, std::ssize(jobs));
      } catch (...) {
        const std::lock_guard lock(one_at_a_time);
        failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  const int cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  std::vector<std::thread> threads;
  for (int i = 1; i < (bench.options.threads > 0 ? bench.options.threads : cores); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return outcomes;
}

Units difference(Units of, const Units& less) {
  for (std::size_t unit = 0; unit < of.size(); ++unit)
    for (std::size_t q = 0; q < of[unit].size(); ++q) of[unit][q] -= less[unit][q];
  return of;
}

void set_beside_mean(std::vector<Outcome>& outcomes, std::uint64_t seed) {
  std::map<std::int64_t, const Outcome*> means, oracles;
  for (const Outcome& outcome : outcomes) {
    if (outcome.row.policy == "mean") means[outcome.row.ratio] = &outcome;
    if (outcome.row.policy == "oracle") oracles[outcome.row.ratio] = &outcome;
  }
  for (Outcome& outcome : outcomes) {
    const std::int64_t ratio = outcome.row.ratio;
    outcome.row.oracle_mass = oracles.at(ratio)->row.mass.value;
    outcome.row.over_mean = bootstrap(difference(outcome.recall, means.at(ratio)->recall), seed);
  }
}

}  // namespace

void validate(const CompareOptions& options, const DataSet& data) {
  const auto refuse = [](const char* what, std::int64_t found, const std::string& expected) {
    throw ConfigError(fmt::format("{}: found {}, expected {}", what, found, expected));
  };
  for (const std::string& name : options.policies) find_compared(name);
  if (options.ratios.empty()) throw ConfigError("ratio: found none, expected at least one");
  for (const std::int64_t ratio : options.ratios) {
    if (ratio < 1 || ratio > 16) refuse("ratio", ratio, "1 to 16");
    if (data.geometry.tokens % ratio != 0)
      refuse("ratio", ratio,
             fmt::format("a divisor of the {} tokens of {}", data.geometry.tokens, data.name));
  }
  const std::int64_t most = data.geometry.tokens / 2;
  if (options.k < 0 || options.k > most)
    refuse("k", options.k, fmt::format("1 to {}, half the tokens of {}", most, data.name));
  const std::int64_t fewest = data.geometry.tokens / std::ranges::max(options.ratios);
  if (options.pools < 0 || options.pools > fewest)
    refuse("pools", options.pools, fmt::format("1 to {}, all pools of {}", fewest, data.name));
  if (options.epochs < 1 || options.epochs > 10000) refuse("epochs", options.epochs, "1 to 10000");
}

std::vector<Row> compare(const DataSet& data, const CompareOptions& options,
                         const std::function<void(std::int64_t, std::int64_t)>& advance) {
  validate(options, data);
  Bench bench{data, options, options.k > 0 ? options.k : data.k, {}};
  for (const training::Sequence& sequence : data.held_out)
    bench.held_out.push_back(unpooled(data, sequence, bench.k));
  std::vector<Outcome> outcomes = run_all(bench, jobs_of(options), advance);
  set_beside_mean(outcomes, options.seed);
  std::vector<Row> rows;
  rows.reserve(outcomes.size());
  for (Outcome& outcome : outcomes) rows.push_back(std::move(outcome.row));
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    if (a.ratio != b.ratio) return a.ratio < b.ratio;
    if (a.recall.value != b.recall.value) return a.recall.value > b.recall.value;
    if (a.form != b.form) return a.form < b.form;
    return a.policy < b.policy;
  });
  return rows;
}

}  // namespace indexpool::verify::recall
