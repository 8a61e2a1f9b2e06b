#include "indexpool/reports/cli/problem_options.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

constexpr const char* group = "A problem of your own";

// An unsigned option would take -1 for its largest value.
std::string not_negative(const std::string& text) {
  return text.starts_with('-') ? "found " + text + ", expected 0 or more" : std::string();
}

bool any_given(const std::vector<CLI::Option*>& options) {
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->count() > 0; });
}

}  // namespace

void ProblemOptions::declare(CLI::App& app) {
  IndexerConfig& indexer = problem.indexer;
  const auto option = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->capture_default_str()->group(group);
  };
  lengths = "259";
  shape = {
      option("--policy", problem.policy, "policy of pooling (indexpool list policies)"),
      option("--attention", problem.attention, "layer of attention (indexpool list attention)"),
      option("--mode", problem.mode, "numeric mode"),
      option("--heads", indexer.index_n_heads, "index_n_heads"),
      option("--head-dim", indexer.index_head_dim, "index_head_dim"),
      option("--topk", indexer.index_topk, "index_topk, in tokens"),
      option("--kpool", indexer.index_kpool, "index_kpool"),
      app.add_flag("--no-tail", no_tail, "without the forced tail")->group(group),
      option("--lengths", lengths, "tokens of each sequence, as in 259 or 5,64,1K"),
      option("--fill", problem.fill, "how inputs are drawn")};
  schedule = {option("--prefill", problem.schedule.prefill_tokens,
                     "tokens that come at once, the others one step at a time (-1: all)"),
              option("--chunk", problem.schedule.prefill_chunk, "prefill in chunks of (0: one)"),
              option("--drafts", problem.schedule.drafts, "speculative drafts per step, 0 to 6"),
              option("--page", problem.states_per_page, "pools a page holds"),
              option("--seed", problem.seed, "of the inputs and of accepted drafts")
                  ->check(not_negative, "")};
}

bool ProblemOptions::any_shape() const { return any_given(shape); }
bool ProblemOptions::any_schedule() const { return any_given(schedule); }

Problem ProblemOptions::parsed() const {
  Problem out = problem;
  out.lengths = parse_sizes("--lengths", lengths);
  out.indexer.index_kpool_always_select_tail = !no_tail;
  if (!out.attention.empty()) {
    // Before the layer is looked up: what a typing mistake may have meant.
    require_known("attention", out.attention, attention_layer_names());
    const bool given = std::any_of(shape.begin(), shape.end(), [](const CLI::Option* option) {
      return option->get_name() == "--mode" && option->count() > 0;
    });
    if (!given) out.mode = "bf16";  // the indexer's default stores codes, which nothing here does
    if (!find_attention_layer(out.attention).selects)
      out.indexer.index_topk = out.indexer.index_kpool;
  } else if (out.policy != shipped_policy) {
    // A published form selects nothing: its groups need not divide the shipped top-k.
    out.indexer.index_topk = out.indexer.index_kpool;
  }
  require_known("fill", out.fill, verify::fill_names());
  validate(out, "command line");
  return out;
}

}  // namespace indexpool::cli
