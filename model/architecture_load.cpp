// Architectures by name or path. A file of ours wraps a checkpoint's config:
//   {"name", "source", "config": {...}}                   as published, or
//   {"name", "source", "config_of": "...", "form": {...}} another's, with its sparse attention's
//                                                         cache replaced by a published pooled form
// and may say "numeric_mode", "states_per_page", "kv_format", "index_format".
#include <algorithm>

#include <fmt/format.h>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/checkpoint_config.hpp"
#include "indexpool/model/checkpoint_reader.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/named_json.hpp"

namespace indexpool {
namespace {

PooledForm read_form(const JsonValue& value) {
  const JsonObject object = value.object({"id", "of_one_token", "heads", "vectors", "dim", "kept"});
  PooledForm form;
  form.id = sourced_text(object["id"]);
  form.of_one_token = object["of_one_token"].boolean();
  form.heads = whole_number(object["heads"], 1, largest_width);
  form.vectors = whole_number(object["vectors"], 1, largest_width);
  form.dim = whole_number(object["dim"], 1, largest_width);
  form.kept = whole_number(object["kept"], 0, largest_width);
  return form;
}

void apply_form(const JsonValue& value, Architecture& architecture) {
  architecture.form = read_form(value);
  for (LayerSpec& layer : architecture.layers) {
    if (layer.attention != AttentionKind::latent) continue;
    layer.attention = AttentionKind::pooled_form;
    layer.indexer = false;
  }
  architecture.draft_layers.clear();
  architecture.kv_format = KvFormat::bf16;
}

template <class Format>
Format format_of(const JsonValue& value, std::initializer_list<Format> all) {
  const std::string name = value.text();
  std::vector<std::string> known;
  for (const Format format : all) {
    if (name == to_string(format)) return format;
    known.emplace_back(to_string(format));
  }
  value.fail(fmt::format("found \"{}\", expected one of {}", name, fmt::join(known, ", ")));
}

void read_choices(const JsonObject& object, Architecture& architecture) {
  if (const auto mode = object.find("numeric_mode")) {
    architecture.numeric_mode = mode->text();
    try {
      numeric_mode(architecture.numeric_mode);
    } catch (const ConfigError& error) {
      mode->fail(error.what());
    }
  }
  if (const auto states = object.find("states_per_page")) {
    architecture.states_per_page = whole_number(*states, 1, largest_width);
  }
  if (const auto format = object.find("kv_format")) {
    using enum KvFormat;
    architecture.kv_format =
        format_of<KvFormat>(*format, {f32, bf16, fp8, fp8_scaled, fp8_ds_mla, v4_packed});
  }
  if (const auto format = object.find("index_format")) {
    using enum IndexFormat;
    architecture.index_format = format_of<IndexFormat>(*format, {fp8, mxfp4, bf16, f32});
  }
}

Architecture read_wrapped(const JsonValue& root) {
  const JsonObject object =
      root.object({"name", "source"}, {"config", "config_of", "form", "numeric_mode",
                                       "states_per_page", "kv_format", "index_format"});
  const auto config = object.find("config");
  const auto config_of = object.find("config_of");
  if (config.has_value() == config_of.has_value()) {
    root.fail(
        "expected either \"config\" (a checkpoint's config.json) or \"config_of\" (the name "
        "of a built-in architecture)");
  }
  Architecture architecture =
      config ? read_checkpoint_config(*config) : load_model(sourced_text(*config_of));
  architecture.name = sourced_text(object["name"]);
  architecture.source = sourced_text(object["source"]);
  if (const auto form = object.find("form")) apply_form(*form, architecture);
  read_choices(object, architecture);
  return architecture;
}

}  // namespace

Architecture load_model(const std::string& name_or_path) {
  const JsonValue root =
      find_json(name_or_path, embedded_architectures(), "architecture", "architectures");
  const std::vector<std::pair<std::string, JsonValue>> members = root.members();
  const auto has = [&](std::string_view key) {
    return std::any_of(members.begin(), members.end(),
                       [&](const auto& member) { return member.first == key; });
  };
  const bool published = has("model_type") && !has("config") && !has("config_of");
  return published ? read_checkpoint_config(root) : read_wrapped(root);
}

ArchitectureConfig load_architecture(const std::string& name_or_path) {
  return indexer_view(load_model(name_or_path));
}

std::vector<std::string> architecture_names() { return names_of(embedded_architectures()); }

}  // namespace indexpool
