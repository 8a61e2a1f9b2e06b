#include "indexpool/verify/measure/grid.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool {
std::span<const DataFile> embedded_grids();  // verify/measure/grids/*.json
}

namespace indexpool::verify::timing {
namespace {

struct KernelsOf {
  std::string_view op;
  std::vector<std::string> kernels;
};
const std::vector<KernelsOf>& table() {
  static const std::vector<KernelsOf> rows = {
      {"pool", {"pool"}},
      {"seed_tail", {"seed_tail"}},
      {"append", {"append"}},
      {"quantize_query", {"quantize_query"}},
      {"logits", {"logits_mma", "logits_e4m3", "logits_fma"}},
      {"topk", {"topk"}}};
  return rows;
}

std::vector<std::string> texts(const JsonValue& value) {
  std::vector<std::string> list;
  for (const JsonValue& each : value.array()) list.push_back(each.text());
  if (list.empty()) value.fail("found an empty list, expected at least one text");
  return list;
}

std::vector<std::int64_t> sizes(const JsonValue& value, std::int64_t high) {
  std::vector<std::int64_t> list;
  for (const JsonValue& each : value.array()) list.push_back(each.integer(1, high));
  if (list.empty()) value.fail("found an empty list, expected at least one size");
  return list;
}

void require_known(const JsonValue& where, const std::vector<std::string>& found,
                   const std::vector<std::string>& known, const char* what) {
  for (const std::string& name : found) {
    if (std::ranges::find(known, name) != known.end()) continue;
    where.fail(fmt::format("unknown {} \"{}\"{} (known: {})", what, name, did_you_mean(name, known),
                           fmt::join(known, ", ")));
  }
}

// A case: the product of its axes.
void add_points(const JsonValue& value, std::vector<Point>& points) {
  constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t most_rows = std::int64_t{1} << 24;
  const JsonObject object =
      value.object({"op", "mode", "tokens", "batch"}, {"kernel", "rows", "most_tokens"});
  const std::string op = object["op"].text();
  require_known(object["op"], {op}, operation_names(), "operation");
  const auto kernel = object.find("kernel");
  const auto rows = object.find("rows");
  const auto limit = object.find("most_tokens");
  const std::vector<std::string> kernels = kernel ? texts(*kernel) : kernel_names(op);
  if (kernel) require_known(*kernel, kernels, kernel_names(op), "kernel");
  const std::vector<std::string> modes = texts(object["mode"]);
  std::vector<std::string> known_modes;
  for (const NumericMode& mode : numeric_modes()) known_modes.push_back(mode.name);
  require_known(object["mode"], modes, known_modes, "numeric mode");
  const std::int64_t most = limit ? limit->integer(1) : std::numeric_limits<std::int64_t>::max();
  const std::size_t before = points.size();
  for (const std::string& mode : modes)
    for (const std::string& name : kernels)
      for (const std::int64_t tokens : sizes(object["tokens"], most_tokens))
        for (const std::int64_t batch : sizes(object["batch"], most_rows))
          for (const std::int64_t count :
               rows ? sizes(*rows, most_rows) : std::vector{std::int64_t{1}})
            if (tokens * batch <= most && count <= tokens)
              points.push_back({op, name, mode, tokens, batch, count});
  if (points.size() == before) value.fail("no point is left: most_tokens or rows rule all out");
}

std::string named(const JsonValue& value) {
  std::string text = value.text();
  if (text.empty()) value.fail("found an empty text, expected one that says something");
  return text;
}

Grid grid_from(const JsonValue& root) {
  const JsonObject object = root.object({"name", "why", "architecture", "cases"});
  Grid grid;
  grid.name = named(object["name"]);
  grid.why = named(object["why"]);
  grid.architecture = named(object["architecture"]);
  const ArchitectureConfig architecture = load_architecture(grid.architecture);
  grid.geometry = {architecture.indexer, architecture.states_per_page};
  for (const JsonValue& each : object["cases"].array()) add_points(each, grid.points);
  if (grid.points.empty()) object["cases"].fail("found no case, expected at least one");
  return grid;
}

}  // namespace

std::string describe(const Point& point) {
  return fmt::format("{} {}, {} x {} tokens, {} row{} each", point.kernel, point.mode, point.batch,
                     point.tokens, point.rows, point.rows == 1 ? "" : "s");
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const KernelsOf& row : table()) names.emplace_back(row.op);
  return names;
}

std::vector<std::string> kernel_names(std::string_view op) {
  for (const KernelsOf& row : table())
    if (row.op == op) return row.kernels;
  throw ConfigError(
      fmt::format("unknown operation \"{}\" (known: {})", op, fmt::join(operation_names(), ", ")));
}

Grid parse_grid(std::string_view text, std::string_view where) {
  return grid_from(parse_json(text, where));
}

std::vector<std::string> grid_names() {
  std::vector<std::string> names;
  for (const DataFile& file : embedded_grids()) names.emplace_back(file.name);
  return names;
}

Grid load_grid(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) {
    return grid_from(read_json(name_or_path));
  }
  for (const DataFile& file : embedded_grids()) {
    if (file.name == name_or_path) return parse_grid(file.text, file.name);
  }
  throw ConfigError(fmt::format(
      "unknown grid \"{}\"{} (built in: {}; a file of your own needs a '/' "
      "or '.json' in its name)",
      name_or_path, did_you_mean(name_or_path, grid_names()), fmt::join(grid_names(), ", ")));
}

}  // namespace indexpool::verify::timing
