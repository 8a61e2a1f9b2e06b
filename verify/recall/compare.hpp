// Every form of pooling that makes sense on neighbouring tokens, against the unpooled scores.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/reference/training/evaluate.hpp"
#include "indexpool/verify/recall/data.hpp"

namespace indexpool::verify::recall {

enum class Form {
  fixed,      // nothing to learn
  untrained,  // its parameters as training starts
  trained,    // on the queries learnt from
  unpooled    // ranks by scores that a pooled indexer never sees: to set the others beside
};
std::string_view to_string(Form form);  // "fixed", "untrained", "trained", "unpooled"

struct Policy {
  std::string name, note;  // what it is here, in a line
  bool learns = false;
  Form form = Form::fixed;  // of one that does not learn
};
// In the order of tables that are not ranked. "block_max" pools unpooled scores, "best_pools" picks
// the pools that hold most of the best tokens, "oracle" selects the best tokens themselves.
const std::vector<Policy>& compared_policies();
// ConfigError for names that are not compared: near ones, or which policy selects the same.
const Policy& find_compared(std::string_view name);

struct CompareOptions {
  std::vector<std::int64_t> ratios = {2, 4, 8, 16};
  std::vector<std::string> policies;  // empty: all; oracle and mean are always there
  std::int64_t k = 0;                 // tokens asked for; 0: as many as the data set says
  std::int64_t pools = 0;             // selected; 0: ceil(k / ratio), as the shipped indexer does
  std::int64_t epochs = 30;
  std::uint64_t seed = 1;
  reference::training::Width pooled = reference::training::Width::off;  // quantiser of the pools
  int threads = 0;  // 0: one a core. The answer does not depend on it.
};
// ConfigError naming the option.
void validate(const CompareOptions& options, const DataSet& data);

struct Row {
  std::string policy;
  Form form = Form::fixed;
  std::int64_t ratio = 0, k = 0;
  std::int64_t selected = 0;  // tokens
  // Over held-out queries, 95 % intervals over the data set's units.
  reference::training::Interval recall, f1, mass;
  reference::training::Interval over_mean;  // recall less that of mean pooling, query by query
  double oracle_mass = 0;                   // attention on the k best tokens
  std::int64_t queries = 0, ties = 0;
  double loss_before = 0, loss_after = 0;  // trained: the objective on the sequences learnt from
};
// Best recall first within each ratio; of equal ones that with less to learn, then by name.
// `advance` is told how many of how many jobs are done, by one thread at a time.
std::vector<Row> compare(const DataSet& data, const CompareOptions& options,
                         const std::function<void(std::int64_t, std::int64_t)>& advance = {});

}  // namespace indexpool::verify::recall
