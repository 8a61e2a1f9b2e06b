#include "indexpool/verify/foreign/manifest.hpp"

#include <algorithm>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/error.hpp"
#include "indexpool/model/record.hpp"
#include "indexpool/model/strict_json.hpp"
#include "indexpool/verify/foreign/adapters.hpp"

namespace indexpool::verify {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* how_to =
    "For each case: read the tensors of its file `inputs`, run your kernel, and write any subset "
    "of the tensors under `outputs` to its file `outputs` (safetensors). Then run: indexpool check "
    "<this folder>. N tokens of all sequences back to back, D = head_dim, H = heads, pools of all "
    "sequences back to back, each with its complete pools only.";

Json json_of(const TensorNote& note) {
  Json dtypes = Json::array(), shape = Json::array();
  for (const DType dtype : note.dtypes) dtypes.push_back(info(dtype).safetensors_name);
  for (const std::int64_t size : note.shape) {
    if (size < 0) {
      shape.push_back(fmt::format("{} or more", -size));
    } else {
      shape.push_back(size);
    }
  }
  return {{"dtype", dtypes.size() == 1 ? dtypes[0] : dtypes},
          {"shape", std::move(shape)},
          {"meaning", note.meaning}};
}

Json json_of(const std::vector<TensorNote>& notes) {
  Json json = Json::object();
  for (const TensorNote& note : notes) json[note.name] = json_of(note);
  return json;
}

Json layouts_of(const ForeignCase& foreign) {
  Json json = Json::object();
  for (const CacheAdapter& adapter : cache_adapters()) {
    json[std::string(adapter.name)] =
        json_of(cache_outputs(foreign, foreign.test_case.inputs.mode, adapter));
  }
  return json;
}

Json json_of(const NumericMode& mode) {
  const char* scale = mode.scale == ScaleRule::none           ? "none"
                      : mode.scale == ScaleRule::power_of_two ? "2^ceil(log2(max(amax, 1e-4)/448))"
                      : mode.cache == DType::i8               ? "max(amax, 1e-4)/127"
                                                              : "max(amax, 1e-4)/448";
  return {{"name", mode.name},
          {"storage", info(mode.storage).name},
          {"pooled_sum", mode.pool_rounding == PoolRounding::f32_accumulate
                             ? "accumulated in f32, rounded once"
                             : "probabilities and products rounded to the storage dtype"},
          {"pooled", info(mode.pooled).name},
          {"hadamard", mode.hadamard},
          {"cache", info(mode.cache).name},
          {"scale", scale}};
}

Json json_of(const ManifestEntry& entry, const ForeignCase& foreign) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const IndexerConfig& config = inputs.config;
  return {{"id", entry.id},
          {"name", entry.name},
          {"inputs", entry.inputs},
          {"outputs", entry.outputs},
          {"config",
           {{"heads", config.index_n_heads},
            {"head_dim", config.index_head_dim},
            {"kpool", config.index_kpool},
            {"topk", config.index_topk},
            {"always_select_tail", config.index_kpool_always_select_tail},
            {"logit_scale", inputs.logit_scale},
            {"states_per_page", foreign.paging.states_per_page},
            {"pages", foreign.paging.pages},
            {"token_pages", foreign.paging.token_pages}}},
          {"mode", json_of(inputs.mode)},
          {"input_tensors", json_of(foreign_inputs(foreign))},
          {"output_tensors", json_of(foreign_outputs(foreign, {}))},
          {"layouts", layouts_of(foreign)}};
}

// A folder's temporary twin, gone again unless it was renamed.
class Draft {
 public:
  explicit Draft(fs::path folder) : folder_(std::move(folder)), path_(folder_) {
    path_ += ".partial";
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    std::error_code error;
    fs::create_directories(path_ / "outputs", error);
    if (error) {
      throw EnvironmentError(
          fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
    }
  }
  ~Draft() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const fs::path& path() const { return path_; }
  void publish() {
    std::error_code error;
    fs::remove(folder_, error);  // an empty one
    fs::rename(path_, folder_, error);
    if (error) {
      throw EnvironmentError(
          fmt::format("{}: cannot be written: {}", folder_.string(), error.message()));
    }
    path_.clear();
  }

 private:
  fs::path folder_, path_;
};

void require_free(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(folder.string() + ": is a file; expected a folder, or nothing");
  }
  if (!fs::is_empty(folder, error)) {
    throw ConfigError(folder.string() +
                      ": is not empty; an export needs a folder of its own, so that no outputs of "
                      "another one are checked with it");
  }
}

std::string text_inside(const JsonValue& value) {
  std::string text = value.text();
  const fs::path path(text);
  const bool leaves = path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end();
  if (text.empty() || leaves) value.fail("expected a path inside the folder");
  return text;
}

// The schema first: a newer one may have keys that nobody here knows.
void check_schema(const JsonValue& root) {
  if (!root.is_object()) root.fail("found " + root.found() + ", expected an object");
  for (const auto& [key, value] : root.members()) {
    if (key != "schema") continue;
    const std::int64_t schema = value.integer(1);
    if (schema == manifest_schema) return;
    value.fail(fmt::format("found schema {}, this program reads {}; use the program that wrote it",
                           schema, manifest_schema));
  }
  root.fail("no \"schema\"; expected a manifest that indexpool export wrote");
}

ManifestEntry read_entry(const JsonValue& value) {
  const JsonObject in = value.object({"id", "name", "inputs", "outputs", "config", "mode",
                                      "input_tensors", "output_tensors", "layouts"});
  for (const char* key : {"config", "mode", "input_tensors", "output_tensors", "layouts"}) {
    if (!in[key].is_object()) in[key].fail("found " + in[key].found() + ", expected an object");
  }
  return {in["id"].text(), in["name"].text(), text_inside(in["inputs"]),
          text_inside(in["outputs"])};
}

// A misspelt file of outputs would otherwise look like a case that was not run.
void refuse_unlisted(const fs::path& folder, const std::vector<ManifestEntry>& entries) {
  std::error_code error;
  std::vector<std::string> known, found;
  for (const ManifestEntry& entry : entries) known.push_back(entry.outputs);
  for (const auto& file : fs::directory_iterator(folder / "outputs", error)) {
    found.push_back((fs::path("outputs") / file.path().filename()).generic_string());
  }
  std::ranges::sort(found);
  for (const std::string& file : found) {
    if (std::ranges::find(known, file) != known.end()) continue;
    throw ConfigError(fmt::format("{}: no case of {} has this file{}", (folder / file).string(),
                                  manifest_name, did_you_mean(file, known)));
  }
}

}  // namespace

void write_export(const fs::path& folder, const std::vector<ExportJob>& jobs,
                  const std::function<void(const std::string&)>& progress) {
  require_free(folder);
  Draft draft(folder);
  Json cases = Json::array();
  for (const ExportJob& job : jobs) {
    if (progress) progress(fmt::format("{}/{} {}", cases.size() + 1, jobs.size(), job.id));
    const ForeignCase foreign = job.make();
    const ManifestEntry entry{job.id, foreign.test_case.name,
                              fmt::format("cases/{}.safetensors", job.id),
                              fmt::format("outputs/{}.safetensors", job.id)};
    write_safetensors(draft.path() / entry.inputs, foreign_input_file(foreign));
    cases.push_back(json_of(entry, foreign));
  }
  const Json manifest = {
      {"schema", manifest_schema}, {"how_to", how_to}, {"cases", std::move(cases)}};
  write_text(draft.path() / manifest_name, manifest.dump(1) + "\n");
  draft.publish();
}

std::vector<ManifestEntry> read_manifest(const fs::path& folder) {
  const JsonValue root = read_json(folder / manifest_name);
  check_schema(root);
  const JsonObject in = root.object({"schema", "how_to", "cases"});
  std::vector<ManifestEntry> entries;
  std::set<std::string> ids, outputs;
  for (const JsonValue& value : in["cases"].array()) {
    ManifestEntry entry = read_entry(value);
    if (!ids.insert(entry.id).second) value.fail("the id \"" + entry.id + "\" appears twice");
    if (!outputs.insert(entry.outputs).second) {
      value.fail("another case writes to \"" + entry.outputs + "\" as well");
    }
    if (!fs::is_regular_file(folder / entry.inputs)) {
      value.fail(fmt::format("there is no file {}", (folder / entry.inputs).string()));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) in["cases"].fail("no cases");
  refuse_unlisted(folder, entries);
  return entries;
}

ForeignOutputs read_foreign_outputs(const fs::path& folder, const ManifestEntry& entry) {
  const fs::path path = folder / entry.outputs;
  ForeignOutputs outputs{path.string(), {}};
  if (fs::exists(path)) {
    outputs.tensors = read_safetensors(path).tensors;
  } else {
    outputs.missing = path.string() + " does not exist";
  }
  return outputs;
}

}  // namespace indexpool::verify
