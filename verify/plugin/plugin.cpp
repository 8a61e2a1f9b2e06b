#include "indexpool/verify/plugin/plugin.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/plugin/call.hpp"
#include "indexpool/verify/plugin/shared_object.hpp"
#include "indexpool/verify/verdict.hpp"

namespace indexpool::verify {
namespace {

using plugin::Operation;

struct OperationName {
  Operation operation;
  const char* name;
};
constexpr OperationName operation_names[] = {{Operation::pool, "pool"},
                                             {Operation::quantize_query, "quantize_query"},
                                             {Operation::logits, "logits"},
                                             {Operation::topk, "topk"},
                                             {Operation::pipeline, "pipeline"}};

// By the header's numbers, the names of a contract of foreign outputs.
constexpr const char* accumulation_names[] = {"f32", "mma_f16", "mma_e4m3", "mma_i8"};

std::optional<Verdict> refusal_of(const plugin::Description& description) {
  if (description.refused) return description.refused;
  if (description.offered == 0) {
    return refuse(Status::error, "its table offers no operation: every function is null");
  }
  const auto known = static_cast<std::int32_t>(std::size(accumulation_names));
  if (description.accumulation < 0 || description.accumulation >= known) {
    return refuse(Status::error, fmt::format("its table says accumulation {}, expected 0 to {} "
                                             "(INDEXPOOL_ACCUMULATE_...)",
                                             description.accumulation, known - 1));
  }
  return std::nullopt;
}

}  // namespace

bool Plugin::offers(std::string_view operation) const {
  return std::ranges::find(operations, operation) != operations.end();
}

std::vector<std::string> plugin_operations() {
  std::vector<std::string> names;
  for (const OperationName& row : operation_names) names.emplace_back(row.name);
  return names;
}

Plugin open_plugin(const std::filesystem::path& path, const PluginLimits& limits) {
  plugin::require_shared_object(path);
  Plugin opened;
  opened.path = path;
  opened.worker = plugin::find_worker();
  opened.limits = limits;
  const plugin::Description description =
      plugin::describe_plugin(std::filesystem::absolute(path).string(), {opened.worker, limits});
  opened.name = description.name.empty() ? path.filename().string() : description.name;
  opened.refusal = refusal_of(description);
  if (opened.refusal) return opened;
  opened.accumulation = accumulation_names[description.accumulation];
  for (const OperationName& row : operation_names) {
    if (description.offers(row.operation)) opened.operations.emplace_back(row.name);
  }
  return opened;
}

Record refusal_record(const Plugin& plugin, const Options& options) {
  require(plugin.refusal.has_value(), "the plugin was refused");
  Record record;
  record.case_name = plugin.path.filename().string();
  record.op = "load";
  record.implementation = plugin.name;
  record.environment.target = "plugin";
  record.seed = options.seed;
  record.repeat = options.repeat;
  record.verdict = *plugin.refusal;
  return record;
}

}  // namespace indexpool::verify
