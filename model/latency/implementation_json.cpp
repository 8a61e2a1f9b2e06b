// Implementations as JSON: what was fitted, on which rows, and how well each constant is known.
#include <span>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/data.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/named_json.hpp"

namespace indexpool {

std::span<const DataFile> embedded_implementations();  // model/latency/implementations/*.json

namespace {

double number_within(const JsonValue& value, double low, double high) {
  const double number = value.number();
  if (!(number >= low && number <= high)) {
    value.fail(fmt::format("found {}, expected a number from {} to {}", number, low, high));
  }
  return number;
}

std::string unit_of(std::string_view constant) {
  if (constant.ends_with("_bytes")) return "B";
  if (constant.ends_with("_s")) return "s";
  if (constant.ends_with("_entries")) return "entries";
  if (constant.ends_with("_sm")) return "rows";
  return "1";
}

FittedConstant read_constant(const JsonValue& value, const FormConstant& expected) {
  const JsonObject object = value.object({"value", "unit", "low", "high", "provenance"});
  const auto within = [&](std::string_view key) {
    return number_within(object[key], expected.least * 0.999999, expected.most * 1.000001);
  };
  FittedConstant constant{within("value"), within("low"), within("high"), true};
  if (constant.low > constant.value || constant.value > constant.high) {
    value.fail(fmt::format("found low {}, value {}, high {}; expected low <= value <= high",
                           constant.low, constant.value, constant.high));
  }
  if (object["unit"].text() != unit_of(expected.name)) {
    object["unit"].fail(fmt::format("found \"{}\", expected \"{}\"", object["unit"].text(),
                                    unit_of(expected.name)));
  }
  constant.determined = sourced_text(object["provenance"]) != "assumed";
  return constant;
}

Spread read_spread(const JsonValue& value) {
  const JsonObject object = value.object({"low", "high", "rows"});
  return {number_within(object["low"], 1e-3, 1), number_within(object["high"], 1, 1e3),
          object["rows"].integer(1)};
}

Implementation read_implementation(const JsonValue& value) {
  const JsonObject object = value.object({"kernel", "form", "rows_fitted", "constants", "spread"});
  Implementation out;
  out.kernel = sourced_text(object["kernel"]);
  out.form = object["form"].text();
  out.rows_fitted = object["rows_fitted"].integer(1);
  const KernelForm& form = kernel_form(out.form);
  std::map<std::string, JsonValue> given;
  for (const auto& [name, each] : object["constants"].members()) given.emplace(name, each);
  for (const FormConstant& constant : form.constants) {
    const auto at = given.find(std::string(constant.name));
    if (at == given.end()) {
      object["constants"].fail(
          fmt::format("no \"{}\", which the form {} needs", constant.name, form.name));
    }
    out.constants.push_back(read_constant(at->second, constant));
    given.erase(at);
  }
  if (!given.empty()) {
    given.begin()->second.fail(fmt::format("the form {} has no such constant", form.name));
  }
  for (const auto& [name, each] : object["spread"].members()) out.spread[name] = read_spread(each);
  return out;
}

nlohmann::ordered_json json_of(const Implementation& implementation) {
  const KernelForm& form = kernel_form(implementation.form);
  nlohmann::ordered_json out = {{"kernel", implementation.kernel},
                                {"form", implementation.form},
                                {"rows_fitted", implementation.rows_fitted}};
  for (std::size_t i = 0; i < form.constants.size(); ++i) {
    const FittedConstant& constant = implementation.constants[i];
    const bool tried = !form.constants[i].continuous;
    out["constants"][std::string(form.constants[i].name)] = {
        {"value", constant.value},
        {"unit", unit_of(form.constants[i].name)},
        {"low", constant.low},
        {"high", constant.high},
        {"provenance", !constant.determined ? "assumed"
                       : tried              ? "best of those tried"
                                            : "fitted"}};
  }
  for (const auto& [name, spread] : implementation.spread) {
    out["spread"][name] = {{"low", spread.low}, {"high", spread.high}, {"rows", spread.rows}};
  }
  return out;
}

}  // namespace

ImplementationSet load_implementations(const std::string& name_or_path) {
  const JsonValue root = find_json(name_or_path, embedded_implementations(), "implementation set",
                                   "latency/implementations");
  const JsonObject object = root.object({"name", "table", "device", "source", "provenance",
                                         "held_out_share", "seed", "implementations"});
  ImplementationSet set;
  set.name = sourced_text(object["name"]);
  set.table = sourced_text(object["table"]);
  set.device = sourced_text(object["device"]);
  set.source = sourced_text(object["source"]);
  set.provenance = sourced_text(object["provenance"]);
  set.held_out_share = number_within(object["held_out_share"], 0, 1);
  set.seed = object["seed"].unsigned_integer();
  for (const JsonValue& each : object["implementations"].array()) {
    set.implementations.push_back(read_implementation(each));
    for (std::size_t i = 0; i + 1 < set.implementations.size(); ++i) {
      if (set.implementations[i].kernel == set.implementations.back().kernel) {
        each.fail(fmt::format("the kernel \"{}\" appears twice", set.implementations[i].kernel));
      }
    }
  }
  return set;
}

std::vector<std::string> implementation_names() { return names_of(embedded_implementations()); }

std::string to_json(const ImplementationSet& set) {
  nlohmann::ordered_json out = {{"name", set.name},
                                {"table", set.table},
                                {"device", set.device},
                                {"source", set.source},
                                {"provenance", set.provenance},
                                {"held_out_share", set.held_out_share},
                                {"seed", set.seed},
                                {"implementations", nlohmann::ordered_json::array()}};
  for (const Implementation& each : set.implementations) {
    out["implementations"].push_back(json_of(each));
  }
  return out.dump(1) + "\n";
}

}  // namespace indexpool
