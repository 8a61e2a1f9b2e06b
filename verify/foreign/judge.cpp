// One function per operation: which outputs it looks at, which checks it asks.
#include "indexpool/verify/foreign/judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "indexpool/verify/checks/tally.hpp"
#include "indexpool/verify/judging.hpp"

namespace indexpool::verify {
namespace {

std::vector<char> every_pool(const IndexerInputs& inputs) {
  return std::vector<char>(static_cast<std::size_t>(first_pools(inputs).back()), 1);
}

// "pooled" as stored pools whose scales are 1.
StoredPools pools_of(const Tensor& pooled) {
  StoredPools stored;
  stored.pools = pooled.dim(0);
  stored.head_dim = pooled.dim(1);
  for (std::int64_t i = 0; i < pooled.size(); ++i) stored.codes.push_back(pooled.at(i));
  stored.scales.assign(static_cast<std::size_t>(stored.pools), 1);
  return stored;
}

// Tokens as i32; what does not fit is no position, and stays out of range.
std::vector<std::int32_t> tokens_of(const Tensor& tensor) {
  constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t token = tensor.dtype() == DType::i32
                                   ? tensor.as<std::int32_t>()[static_cast<std::size_t>(i)]
                                   : tensor.as<std::int64_t>()[static_cast<std::size_t>(i)];
    tokens.push_back(static_cast<std::int32_t>(std::clamp(token, least, most)));
  }
  return tokens;
}

// The logits that came back as enclosures of one point each; none where one of them is NaN.
std::optional<LogitBounds> points(const IndexerInputs& inputs, const Tensor& logits) {
  LogitBounds bounds;
  const std::int64_t width = logits.dim(1);
  for (const Sequence& sequence : inputs.sequences) {
    const std::int64_t pools = sequence.length / inputs.config.index_kpool;
    reference::Bounded of(Shape{sequence.length, pools});
    for (std::int64_t i = 0; i < sequence.length; ++i) {
      for (std::int64_t p = 0; p < reference::visible_pools(i, inputs.config.index_kpool); ++p) {
        const double x = logits.at((sequence.first_row + i) * width + p);
        if (std::isnan(x)) return std::nullopt;
        const auto at = static_cast<std::size_t>(i * pools + p);
        of.value[at] = of.low[at] = of.high[at] = x;
      }
    }
    bounds.sequences.push_back(std::move(of));
  }
  return bounds;
}

// "structure": each row is a selection, in the columns that the contract says.
Check check_forms(const ForeignTrial& trial, std::span<const std::int32_t> tokens,
                  std::int64_t columns) {
  const IndexerInputs& inputs = trial.inputs;
  const auto& tail = find_row(tail_adapters(), "tail", trial.contract.tail);
  const auto& order = find_row(order_adapters(), "order", trial.contract.order);
  Tally tally("structure");
  std::int64_t batch_pools = 0;
  for (const Sequence& sequence : inputs.sequences) {
    batch_pools = std::max(batch_pools, sequence.length / inputs.config.index_kpool);
  }
  std::size_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto entries = tokens.subspan(row++ * static_cast<std::size_t>(columns),
                                        static_cast<std::size_t>(columns));
    const ParsedRow parsed =
        parse_selection(entries, query.position, query.first_key, inputs.config);
    std::string fault = parsed.fault.empty() ? "" : ": " + parsed.fault;
    const SelectedRow selected{entries,         parsed.pools,  query.position,
                               query.first_key, inputs.config, batch_pools};
    for (const FormAdapter* form : {&tail, &order}) {
      if (!fault.empty()) break;
      fault = form->fault(selected);
      if (!fault.empty()) fault.insert(0, ", ");
    }
    tally.compare(fault.empty(), [&] {
      return fmt::format("sequence {}, token {}{}", query.request, query.position, fault);
    });
  }
  return std::move(tally).finish();
}

// Rows of exactly `width` columns; what lies beyond is -1 in a row without faults.
std::vector<std::int32_t> narrowed(std::span<const std::int32_t> tokens, std::int64_t columns,
                                   std::int64_t width) {
  std::vector<std::int32_t> narrow;
  for (std::size_t first = 0; first < tokens.size(); first += static_cast<std::size_t>(columns)) {
    std::vector<std::int32_t> row(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                  tokens.begin() + static_cast<std::ptrdiff_t>(first) + columns);
    std::stable_partition(row.begin(), row.end(), [](std::int32_t token) { return token != -1; });
    narrow.insert(narrow.end(), row.begin(), row.begin() + width);
  }
  return narrow;
}

}  // namespace

const Tensor* ForeignTrial::find(std::string_view name) const {
  const auto found = outputs.tensors.find(std::string(name));
  return found == outputs.tensors.end() ? nullptr : &found->second;
}

const CacheAdapter* ForeignTrial::cache() const {
  for (const CacheAdapter& adapter : cache_adapters()) {
    if (contract.layout.empty() ? adapter.by_name : contract.layout != adapter.name) continue;
    if (find(adapter.codes) == nullptr) continue;
    if (inputs.mode.quantised() && find(adapter.scales) == nullptr) continue;
    return &adapter;
  }
  return nullptr;
}

Judged judge_pools(const ForeignTrial& trial) {
  const IndexerInputs& inputs = trial.inputs;
  const Tensor* pooled = trial.find("pooled");
  const CacheAdapter* adapter = trial.cache();
  Judged judged;
  if (pooled == nullptr && adapter == nullptr) {
    judged.missing = trial.find("pool_codes") != nullptr
                         ? "pool_codes came back without pool_scales"
                         : "no pools came back: none of pooled, pool_rows, pool_codes, pages";
    return judged;
  }
  const std::vector<char> mine = every_pool(inputs);
  judged.rows = static_cast<std::int64_t>(mine.size());
  const reference::Pooled expected = reference::pool(inputs);
  if (pooled != nullptr) {
    reference::Pooled before = expected;  // nothing else is looked at
    before.rotated = expected.pooled;
    judged.checks.push_back(check_pool_bound(inputs, pools_of(*pooled), before, mine));
  }
  if (adapter == nullptr) return judged;
  const StoredPools stored =
      read_foreign_pools(trial.foreign, inputs.mode, *adapter, trial.outputs);
  for (Check& check : pool_value_checks(inputs, stored, expected, mine)) {
    judged.checks.push_back(std::move(check));
  }
  if (adapter->paged) {
    judged.checks.push_back(
        check_foreign_untouched(trial.foreign, inputs.mode, *adapter, trial.outputs));
  }
  return judged;
}

Judged judge_queries(const ForeignTrial& trial) {
  Judged judged;
  const Tensor *codes = trial.find("q_codes"), *scales = trial.find("q_scales");
  if (codes == nullptr || scales == nullptr) {
    judged.missing = codes != nullptr    ? "q_codes came back without q_scales"
                     : scales != nullptr ? "q_scales came back without q_codes"
                                         : "no q_codes and q_scales came back";
    return judged;
  }
  QueryOutput output;
  output.codes.assign(codes->raw().begin(), codes->raw().end());
  for (std::int64_t i = 0; i < scales->size(); ++i) {
    output.scales.push_back(static_cast<float>(scales->at(i)));
  }
  judged.rows = scales->size();
  judged.checks = query_value_checks(trial.inputs, output);
  return judged;
}

std::vector<float> logits_of(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

Judged judge_logits(const ForeignTrial& trial) {
  Judged judged;
  const Tensor* logits = trial.find("logits");
  if (logits == nullptr) {
    judged.missing = "no logits came back";
    return judged;
  }
  const ForeignLogitBounds bounds = foreign_logit_bounds(trial);
  judged.rows = trial.inputs.rows();
  Check check = check_logit_bound(trial.inputs, bounds.bounds, logits_of(*logits), logits->dim(1),
                                  trial.foreign.about_ties);
  if (check.status == Status::failed) {
    check.reason +=
        fmt::format(" (from {}, accumulated in {})", bounds.source, trial.contract.accumulation);
  }
  judged.checks.push_back(std::move(check));
  return judged;
}

Judged judge_selection(const ForeignTrial& trial) {
  Judged judged;
  const IndexerInputs& inputs = trial.inputs;
  const Tensor* selection = trial.find("selection");
  if (selection == nullptr) {
    judged.missing = "no selection came back";
    return judged;
  }
  const std::int64_t columns = selection->dim(1);
  const std::vector<std::int32_t> tokens = tokens_of(*selection);
  judged.checks.push_back(check_forms(trial, tokens, columns));
  const std::vector<std::int32_t> narrow =
      narrowed(tokens, columns, inputs.config.selection_width());

  // On the logits that came back a selection is right or wrong; else their enclosures must do.
  const Tensor* logits = trial.find("logits");
  std::optional<LogitBounds> own = logits == nullptr ? std::nullopt : points(inputs, *logits);
  ForeignLogitBounds enclosed;
  if (!own) enclosed = foreign_logit_bounds(trial);
  enclosed.pools.raw.resize(static_cast<std::size_t>(first_pools(inputs).back()));
  const Certificate certificate = check_selection(inputs, own ? *own : enclosed.bounds,
                                                  enclosed.pools, narrow, trial.foreign.about_ties);
  judged.rows = certificate.rows;
  judged.decidable_rows = certificate.decidable_rows;
  judged.checks.push_back(certificate.check);
  if (trial.contract.deterministic && own) {
    judged.checks.push_back(check_tie_rule(inputs, logits_of(*logits), logits->dim(1), narrow));
  }
  return judged;
}

}  // namespace indexpool::verify
