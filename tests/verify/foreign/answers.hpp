// What the public implementations answered, as if a foreign kernel had: the golden cases.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "indexpool/verify/foreign/foreign.hpp"
#include "indexpool/verify/foreign/manifest.hpp"

#include "../../model/temporary_folder.hpp"

namespace indexpool::verify {

inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(INDEXPOOL_TEST_DATA "/golden")) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(INDEXPOOL_TEST_DATA "/golden") / (name + ".safetensors");
}

// A case with its answers under the names of outputs, in tensors of their own.
struct Answered {
  ForeignCase foreign;
  ForeignOutputs outputs;
};
inline Answered answered(const std::string& name) {
  const Case golden = read_case(golden_path(name));
  Answered result{prepare_foreign(golden, {}), {"answers of " + name, {}}};
  for (const char* output : {"pooled", "pool_rows", "q_codes", "q_scales", "logits", "selection"}) {
    const auto found = golden.expected.find(output);
    if (found != golden.expected.end()) result.outputs.tensors[output] = found->second.clone();
  }
  return result;
}

// Exports the case, writes the outputs where the manifest says, reads both back and judges them.
inline std::vector<Record> through_files(const Answered& golden, const ForeignContract& contract) {
  const TemporaryFolder folder;
  write_export(folder / "cases", {{"only", [&] { return golden.foreign; }}}, {});
  const ManifestEntry entry = read_manifest(folder / "cases").at(0);
  TensorFile file;
  file.tensors = golden.outputs.tensors;
  write_safetensors(folder / "cases" / entry.outputs, file);
  return check_foreign(read_foreign_case(folder / "cases" / entry.inputs),
                       read_foreign_outputs(folder / "cases", entry), contract, {});
}

inline const Record* record_of(const std::vector<Record>& records, Op op) {
  for (const Record& record : records) {
    if (record.op == to_string(op)) return &record;
  }
  return nullptr;
}
inline const Check* check_of(const Record& record, const std::string& name) {
  for (const Check& check : record.verdict.checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

}  // namespace indexpool::verify
