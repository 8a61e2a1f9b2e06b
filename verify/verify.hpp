// The side-by-side runner: a case goes through the reference and through kernels, operation by
// operation, and each operation gets a Record with a certified verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/case.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/verify/observation.hpp"

namespace indexpool::verify {

struct Options {
  std::string target = "simt";  // "simt", "cuda", "reference", or a mutant's name
  Schedule schedule;
  std::int64_t states_per_page = 64;
  std::uint64_t seed = 1;
  bool all_lane_orders = true;  // simt: forward, reverse and random must agree bit for bit
  bool measure = false;         // cuda: time what passed
  std::string repeat;           // command line that repeats it
  std::function<void(const std::string&)> progress;  // may be empty
  // Kernels beside the built-in table. Those of `target` come first; an operation none of them
  // takes falls back to simt, so that a mutant replaces one kernel of the pipeline.
  std::span<const kernels::Kernel> extra_kernels;
  // How the host plans a step; another one stands for an engine's, or for a fault in ours.
  kernels::Planner planner;
  // simt: buffers lie behind gigabytes of nothing (far_target.hpp), so that 32-bit offsets wrap.
  bool far = false;
  // Gets what an operation gave and what it should have given, of the first run; may be empty.
  std::function<void(const Observation&)> observe;
};

// One Record per operation: pool, append (when the schedule decodes), quantize_query (quantised
// modes), logits, topk; and project (reference against golden) when the case has projections.
// With target "reference" the reference alone is compared with the case's expected outputs.
std::vector<Record> verify_case(const Case& test_case, const Options& options);

// A Case from a Problem: named, seeded fills; the same bytes on any machine and thread count.
Case make_case(const Problem& problem);
std::vector<std::string> fill_names();
std::string fill_purpose(const std::string& name);  // the property it attacks

// Built-in suites: "smoke", "ci", "full", "device".
std::vector<std::string> suite_names();
Suite load_suite(const std::string& name_or_path);
// Without the problems of published forms and of attention: what kernels from elsewhere can be
// given.
Suite load_shipped_suite(const std::string& name_or_path);
std::vector<Record> verify_problem(const Problem& problem, const Options& options);

}  // namespace indexpool::verify
