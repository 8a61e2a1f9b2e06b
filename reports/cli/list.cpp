// indexpool list: what there is to name.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/model/attention_layer.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/policy.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/reports/cli/command.hpp"
#include "indexpool/reports/cli/names.hpp"
#include "indexpool/reports/cli/terminal.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/table.hpp"
#include "indexpool/verify/field/field.hpp"
#include "indexpool/verify/measure/grid.hpp"
#include "indexpool/verify/verify.hpp"

namespace indexpool::cli {
namespace {

struct Entry {
  std::string name, what;
};

std::vector<Entry> models() {
  std::vector<Entry> entries;
  for (const std::string& name : architecture_names()) {
    const ArchitectureConfig model = load_architecture(name);
    const IndexerConfig& indexer = model.indexer;
    entries.push_back({name, fmt::format("{} of {} layers, {} heads x {}, kpool {}, topk {}, {}",
                                         model.indexer_layers, model.layers, indexer.index_n_heads,
                                         indexer.index_head_dim, indexer.index_kpool,
                                         indexer.index_topk, model.numeric_mode)});
  }
  return entries;
}

std::vector<Entry> devices() {
  std::vector<Entry> entries;
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    entries.push_back(
        {name, fmt::format("compute capability {}, {} SMs, {} of memory, {}/s read",
                           device.compute_capability, device.sm_count,
                           reports::format_bytes(static_cast<double>(device.memory.value)),
                           reports::format_bytes(device.hbm_read_bytes_per_s.value))});
  }
  return entries;
}

std::vector<Entry> suites() {
  std::vector<Entry> entries;
  for (const std::string& name : verify::suite_names()) {
    const Suite suite = verify::load_suite(name);
    entries.push_back({name, fmt::format("{} problems: {}", suite.problems.size(), suite.why)});
  }
  return entries;
}

std::string scale_text(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::none:
      return "no scale";
    case ScaleRule::power_of_two:
      return "power-of-two scale";
    case ScaleRule::amax:
      break;
  }
  return "amax scale";
}

std::string mode_text(const NumericMode& mode) {
  return fmt::format(
      "{} in, pooled with {} to {}{}, {} cache, {}", info(mode.storage).name,
      mode.pool_rounding == PoolRounding::f32_accumulate ? "f32 sums" : "rounded products",
      info(mode.pooled).name, mode.hadamard ? ", Hadamard" : "", info(mode.cache).name,
      scale_text(mode.scale));
}

std::vector<Entry> modes() {
  std::vector<Entry> entries;
  for (const NumericMode& mode : numeric_modes()) entries.push_back({mode.name, mode_text(mode)});
  for (const NumericMode& mode : pooling_modes())
    entries.push_back(
        {mode.name, fmt::format("with --policy{}: {}", mode.quantised() ? "" : " or --attention",
                                mode_text(mode))});
  return entries;
}

std::vector<Entry> policy_entries() {
  std::vector<Entry> entries;
  for (const PolicyInfo& policy : policies()) {
    const std::string_view by = policy.published;
    entries.push_back(
        {std::string(policy.name),
         fmt::format("{}{} (kpool {}, {} x {})",
                     by.empty() ? "" : fmt::format("{}{}: ", by.size() == 1 ? "form " : "", by),
                     policy.formula, policy.index_kpool, policy.heads, policy.head_dim)});
  }
  return entries;
}

std::vector<Entry> attention_entries() {
  std::vector<Entry> entries;
  for (const AttentionLayer& layer : attention_layers()) {
    entries.push_back({std::string(layer.name),
                       fmt::format("form {}: {} (kpool {}, {} x {})", layer.published,
                                   layer.formula, layer.index_kpool, layer.heads, layer.head_dim)});
  }
  return entries;
}

std::vector<Entry> fills() {
  std::vector<Entry> entries;
  for (const std::string& name : verify::fill_names()) {
    entries.push_back({name, verify::fill_purpose(name)});
  }
  return entries;
}

std::vector<Entry> kernel_entries() {
  std::vector<Entry> entries;
  for (const kernels::Kernel& kernel : kernels::kernels()) {
    entries.push_back({std::string(kernel.name), "on " + std::string(kernel.target)});
  }
  return entries;
}

std::vector<Entry> ops() {
  return {{std::string(to_string(Op::project)),
           "queries, keys, gate scores and head weights from hidden states"},
          {std::string(to_string(Op::pool)), "prefill: index_kpool keys become one cached pool"},
          {std::string(to_string(Op::append)), "decode: new tokens through the tail ring"},
          {std::string(to_string(Op::quantize_query)), "queries rotated and quantised"},
          {std::string(to_string(Op::logits)), "every visible pool scored against every query"},
          {std::string(to_string(Op::topk)), "the best pools as token positions, and the tail"},
          {std::string(to_string(Op::safe_gate)), "decays of linear attention from features"},
          {std::string(to_string(Op::linear_attention)),
           "the gated delta rule, by token and in chunks"},
          {std::string(to_string(Op::sparse_attention)), "attention over selected tokens"},
          {std::string(to_string(Op::gate_fusion)), "the gate that mixes two branches"},
          {std::string(to_string(Op::composite_attention)),
           "causal attention scored by decompressed composite vectors"},
          {std::string(to_string(Op::attention_feedback)), "attention mass to access counts"}};
}

std::vector<Entry> field_entries() {
  std::vector<Entry> entries;
  for (const verify::FieldScenario& scenario : verify::field_suite().scenarios) {
    entries.push_back({scenario.id, fmt::format("{} ({})", scenario.symptom,
                                                fmt::join(scenario.references, ", "))});
  }
  return entries;
}

std::vector<Entry> grids() {
  std::vector<Entry> entries;
  for (const std::string& name : verify::timing::grid_names()) {
    const verify::timing::Grid grid = verify::timing::load_grid(name);
    entries.push_back({name, fmt::format("{} points: {}", grid.points.size(), grid.why)});
  }
  return entries;
}

struct Kind {
  const char* name;
  std::vector<Entry> (*entries)();
};
constexpr Kind kinds[] = {{"models", models},
                          {"devices", devices},
                          {"suites", suites},
                          {"modes", modes},
                          {"fills", fills},
                          {"kernels", kernel_entries},
                          {"policies", policy_entries},
                          {"attention", attention_entries},
                          {"ops", ops},
                          {"field", field_entries},
                          {"grids", grids}};

std::string kind_names() {
  std::string text;
  for (const Kind& kind : kinds) text += std::string(text.empty() ? "" : ", ") + kind.name;
  return text;
}

struct ListOptions {
  std::string kind, out;
  FormatOption format;
};

int list_what(const ListOptions& options) {
  const reports::Format format = options.format.parsed();
  std::vector<std::string> known;
  for (const Kind& kind : kinds) known.emplace_back(kind.name);
  if (!options.kind.empty()) require_known("list", options.kind, known);
  reports::Table table{{{"kind", "kind"}, {"name", "name"}, {"what", "what it is"}}, {}};
  for (const Kind& kind : kinds) {
    if (!options.kind.empty() && options.kind != kind.name) continue;
    for (const Entry& entry : kind.entries()) {
      table.rows.push_back({std::string(kind.name), entry.name, entry.what});
    }
  }
  if (options.out.empty()) {
    print(reports::render(table, format, colour_wanted()));
  } else {
    write_text(options.out, reports::render(table, format));
  }
  return exit_passed;
}

std::function<int()> declare_list(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  app.add_option("what", options->kind, kind_names());
  app.add_option("--out", options->out, "file to write instead of standard output");
  options->format.declare(app);
  return [options] { return list_what(*options); };
}

}  // namespace

extern const Command list_command = {
    "list",
    "Models, devices, suites, modes, policies, attention, fills, kernels, ops, field, grids",
    "  indexpool list\n"
    "  indexpool list fills --format json\n",
    declare_list};

}  // namespace indexpool::cli
