// The pipeline as a Graphviz graph: operations are nodes, what flows between them are edges with
// their bytes, colour is each operation's share of the time of its phase.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "indexpool/reports/escape.hpp"
#include "indexpool/reports/quantity.hpp"
#include "indexpool/reports/report.hpp"
#include "indexpool/reports/summary.hpp"

namespace indexpool::reports {
namespace {

// What one operation moves and takes, from its prediction, else from what was counted or measured.
struct Node {
  std::string implementation;
  double load_bytes = 0, store_bytes = 0;
  double seconds = 0;
  std::string place;  // "1M tokens, a100-sxm4-80gb"
};
using Nodes = std::map<std::string, Node>;

// Adds what was counted, once for each case: several kernels may have run the same operation.
void take_counts(Nodes& nodes, const std::vector<Record>& records) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Record& record : records) {
    if (!seen.insert({record.op, record.case_name}).second) continue;
    Node& node = nodes[record.op];
    if (node.implementation.empty()) node.implementation = record.implementation;
    if (const auto& traffic = record.counted ? record.counted : record.declared) {
      node.load_bytes += static_cast<double>(traffic->global_load.value);
      node.store_bytes += static_cast<double>(traffic->global_store.value);
    }
    if (record.measurement) node.seconds += record.measurement->median.value;
  }
}

// Bytes and times of different problems do not mix: with predictions, only those are shown.
Nodes nodes_of(const std::vector<Record>& records) {
  Nodes nodes;
  for (const Forecast& forecast : forecasts(records)) {
    Node& node = nodes[forecast.op];
    node.implementation = forecast.implementation;
    node.load_bytes = forecast.load_bytes;
    node.store_bytes = forecast.store_bytes;
    node.seconds = forecast.prediction.time.value;
    node.place =
        fmt::format("{} tokens, {}", format_tokens(forecast.tokens), forecast.prediction.device);
  }
  if (nodes.empty()) take_counts(nodes, records);
  for (const Record& record : records) {
    Node& node = nodes[record.op];
    if (node.implementation.empty()) node.implementation = record.implementation;
  }
  nodes.erase("pipeline");
  nodes.erase("gate");
  return nodes;
}

double phase_seconds(const Nodes& nodes, bool prefill) {
  double seconds = 0;
  for (const auto& [op, node] : nodes) {
    if (is_prefill(op) == prefill) seconds += node.seconds;
  }
  return seconds;
}

// Pale to saturated: readable with dark text on every step, in light and dark pages.
std::string share_colour(double share) {
  constexpr std::array<std::string_view, 6> steps = {"#eef2ff", "#dbe4ff", "#fff3bf",
                                                     "#ffe066", "#ffc078", "#ff8787"};
  const auto step = static_cast<std::size_t>(std::clamp(share, 0.0, 0.999) * steps.size());
  return std::string(steps[step]);
}

std::string node_line(const std::string& op, const Node& node, const Nodes& nodes) {
  const bool prefill = is_prefill(op);
  const double total = phase_seconds(nodes, prefill);
  std::string label = escape_dot(op);
  if (!node.implementation.empty() && node.implementation != op) {
    label += "\\n" + escape_dot(node.implementation);
  }
  std::string colour = "#f1f3f5";
  if (node.seconds > 0) {
    label += fmt::format("\\n{}", format_seconds(node.seconds));
    if (!prefill) {
      label += fmt::format(" · {}", format_percent(node.seconds / total));
      colour = share_colour(node.seconds / total);
    }
  }
  return fmt::format("  \"{}\" [label=\"{}\", fillcolor=\"{}\"];\n", escape_dot(op), label, colour);
}

enum class Side { load, store };
struct Flow {
  std::string_view from, to;  // operations or data
  std::string_view what;
  std::string_view op;  // whose bytes
  Side side;
};
constexpr std::array<Flow, 22> flows = {{
    {"hidden states", "project", "", "project", Side::load},
    {"project", "pool_weights", "operands", "pool_weights", Side::load},
    {"pool_weights", "pool", "pool weights", "pool_weights", Side::store},
    {"project", "pool", "keys, gate scores", "pool", Side::load},
    {"project", "append", "keys, gate scores", "append", Side::load},
    {"project", "quantize_query", "queries", "quantize_query", Side::load},
    {"pool", "paged cache", "pools", "pool", Side::store},
    {"append", "paged cache", "pools, tail", "append", Side::store},
    {"quantize_query", "logits", "codes, scales", "quantize_query", Side::store},
    {"paged cache", "logits", "pools, queries", "logits", Side::load},
    {"logits", "topk", "logits", "topk", Side::load},
    {"topk", "token positions", "selection", "topk", Side::store},
    {"project", "safe_gate", "features", "safe_gate", Side::load},
    {"safe_gate", "linear_attention", "log decays", "safe_gate", Side::store},
    {"project", "linear_attention", "queries, keys, values", "linear_attention", Side::load},
    {"project", "sparse_attention", "queries, selected tokens", "sparse_attention", Side::load},
    {"linear_attention", "gate_fusion", "branch a, states", "linear_attention", Side::store},
    {"sparse_attention", "gate_fusion", "branch b", "sparse_attention", Side::store},
    {"gate_fusion", "attention outputs", "", "gate_fusion", Side::store},
    {"project", "composite_attention", "composites, values", "composite_attention", Side::load},
    {"composite_attention", "attention outputs", "", "composite_attention", Side::store},
    {"attention_feedback", "pool_weights", "access counts", "attention_feedback", Side::store},
}};

// A published form pools whatever vectors it is given and keeps no paged cache.
std::string_view name_in(std::string_view name, bool published) {
  if (!published) return name;
  if (name == "keys, gate scores") return "vectors";
  if (name == "pools") return "";
  return name == "paged cache" ? "pooled vectors" : name;
}

std::string flow_lines(const Nodes& nodes, bool published) {
  std::string out;
  for (const Flow& flow : flows) {
    const auto owner = nodes.find(std::string(flow.op));
    if (owner == nodes.end()) continue;
    const Node& node = owner->second;
    const double bytes = flow.side == Side::load ? node.load_bytes : node.store_bytes;
    std::string label(name_in(flow.what, published));
    if (bytes > 0) label += (label.empty() ? "" : "\\n") + format_bytes(bytes);
    // Without a record of the projections their outputs are the inputs of the case.
    const bool given = flow.from == "project" && !nodes.contains("project");
    out += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\"];\n",
                       given ? "inputs" : name_in(flow.from, published),
                       name_in(flow.to, published), label);
  }
  return out;
}

std::string caption(const Nodes& nodes) {
  for (const auto& [op, node] : nodes) {
    if (node.place.empty()) continue;
    return fmt::format("predicted per layer at {}{}", escape_dot(node.place),
                       phase_seconds(nodes, false) > 0 ? "; colour: share of a decode step" : "");
  }
  return "bytes as counted, all cases together";
}

}  // namespace

std::string pipeline_dot(const std::vector<Record>& records) {
  const Nodes nodes = nodes_of(records);
  const bool published = std::ranges::any_of(records, [](const Record& record) {
    return record.problem && record.problem->policy != shipped_policy;
  });
  std::string out =
      "digraph pipeline {\n"
      "  rankdir=LR; bgcolor=\"transparent\"; nodesep=0.3; ranksep=0.3;\n"
      "  fontname=\"Helvetica\"; fontsize=11;\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=12, "
      "color=\"#868e96\", fillcolor=\"#f1f3f5\", margin=\"0.12,0.08\"];\n"
      "  edge [fontname=\"Helvetica\", fontsize=10, color=\"#868e96\", arrowsize=0.7];\n";
  if (nodes.empty()) return out + "  label=\"no operation was recorded\";\n}\n";
  out += fmt::format("  label=\"{}\";\n", caption(nodes));
  for (const auto& [op, node] : nodes) out += node_line(op, node, nodes);
  if (nodes.contains("pool") || nodes.contains("append") || nodes.contains("logits")) {
    out += fmt::format("  \"{}\" [shape=cylinder, style=filled];\n",
                       name_in("paged cache", published));
  }
  for (const std::string_view data :
       {"inputs", "hidden states", "token positions", "attention outputs"}) {
    const bool used = std::any_of(flows.begin(), flows.end(), [&](const Flow& flow) {
      const bool given = flow.from == "project" && !nodes.contains("project");
      return nodes.contains(std::string(flow.op)) &&
             (flow.to == data || (given ? data == "inputs" : flow.from == data));
    });
    if (used) out += fmt::format("  \"{}\" [shape=plaintext, style=\"\"];\n", data);
  }
  return out + flow_lines(nodes, published) + "}\n";
}

}  // namespace indexpool::reports
