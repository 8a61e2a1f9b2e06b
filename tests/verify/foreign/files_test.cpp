// An export as files: what is written reads back as the same case, and whatever is wrong with a
// file is said with its name and the place.
#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/verify/random_problem.hpp"

#include "../../model/expect_error.hpp"
#include "answers.hpp"

namespace indexpool::verify {
namespace {

namespace fs = std::filesystem;

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(a.raw(), b.raw());
}

RC_GTEST_PROP(ExportedCase, ReadsBackTheSame, (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  Options options;
  options.schedule = problem.schedule;
  options.states_per_page = problem.states_per_page;
  options.seed = problem.seed;
  const ForeignCase before = prepare_foreign(make_case(problem), options, about_ties(problem));
  const TemporaryFolder folder;
  const TensorFile written = foreign_input_file(before);
  write_safetensors(folder / "case.safetensors", written);
  const ForeignCase after = read_foreign_case(folder / "case.safetensors");
  const TensorFile again = foreign_input_file(after);
  RC_ASSERT(again.metadata == written.metadata);
  RC_ASSERT(again.tensors.size() == written.tensors.size());
  for (const auto& [name, tensor] : written.tensors) {
    RC_ASSERT(same_bytes(tensor, again.tensors.at(name)));
  }
  RC_ASSERT(after.test_case.inputs.mode == before.test_case.inputs.mode);
  RC_ASSERT(after.test_case.inputs.config == before.test_case.inputs.config);
  RC_ASSERT(after.test_case.inputs.logit_scale == before.test_case.inputs.logit_scale);
}

// Every tensor that is written is documented, and the other way round.
RC_GTEST_PROP(ExportedCase, DocumentsEveryTensor, (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  Options options;
  options.schedule = problem.schedule;
  const ForeignCase foreign = prepare_foreign(make_case(problem), options);
  const TensorFile file = foreign_input_file(foreign);
  const auto notes = foreign_inputs(foreign);
  RC_ASSERT(notes.size() == file.tensors.size());
  for (const TensorNote& note : notes) {
    RC_ASSERT(file.contains(note.name));
    RC_ASSERT(file.tensors.at(note.name).dtype() == note.dtypes.at(0));
    RC_ASSERT(file.tensors.at(note.name).shape() == note.shape);
    RC_ASSERT(!note.meaning.empty());
  }
}

// Replaying the schedule part by part gives every token once and in order, and each pool the slot
// of the one-shot mapping.
TEST(ExportedCase, ScheduleReplaysToTheSameTokens) {
  Problem problem;
  problem.lengths = {37, 0, 21};
  problem.schedule = {16, 5, 3};
  Options options;
  options.schedule = problem.schedule;
  const ForeignCase foreign = prepare_foreign(make_case(problem), options);
  ASSERT_TRUE(foreign.schedule.present());
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const auto parts = foreign.schedule.parts.as<std::int64_t>();
  std::vector<std::int64_t> done(inputs.sequences.size(), 0);
  for (std::size_t at = 0; at < parts.size(); at += 7) {
    const auto [sequence, start, offered, kept, first] =
        std::tuple(parts[at + 2], parts[at + 3], parts[at + 4], parts[at + 5], parts[at + 6]);
    EXPECT_EQ(start, done[static_cast<std::size_t>(sequence)]);
    EXPECT_LE(kept, offered);
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t row = inputs.sequences[static_cast<std::size_t>(sequence)].first_row;
      const std::int64_t dim = inputs.config.index_head_dim;
      EXPECT_EQ(foreign.schedule.keys.at((first + i) * dim),
                inputs.keys.at((row + start + i) * dim));
      EXPECT_EQ(foreign.schedule.slot_mapping.at(first + i),
                foreign.paging.slot_mapping.at(row + start + i));
      EXPECT_EQ(foreign.schedule.positions.at(first + i), start + i);
    }
    done[static_cast<std::size_t>(sequence)] += kept;
  }
  EXPECT_EQ(done, problem.lengths);
}

// A folder with two cases and no outputs.
class ExportedFolder : public testing::Test {
 protected:
  ExportedFolder() { write_export(root_, {job("fp8_small"), job("short_context_f32")}, {}); }
  static ExportJob job(const std::string& name) {
    return {name, [name] { return answered(name).foreign; }};
  }
  void rewrite_manifest(const std::string& what, const std::string& by) const {
    std::string text = read_bytes(root_ / "manifest.json");
    const auto at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    write_bytes(root_ / "manifest.json", text.replace(at, what.size(), by));
  }
  std::string manifest_error() const {
    return config_error_of([&] { read_manifest(root_); });
  }

  TemporaryFolder folder_;
  fs::path root_ = folder_ / "cases";
};

TEST_F(ExportedFolder, ListsItsCases) {
  const auto entries = read_manifest(root_);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].id, "fp8_small");
  EXPECT_EQ(entries[0].inputs, "cases/fp8_small.safetensors");
  EXPECT_EQ(entries[0].outputs, "outputs/fp8_small.safetensors");
  EXPECT_FALSE(fs::exists(root_.string() + ".partial"));
}

TEST_F(ExportedFolder, IsNotWrittenTwice) {
  expect_parts(config_error_of([&] { write_export(root_, {job("fp8_tiny")}, {}); }),
               {root_.string(), "is not empty"});
  EXPECT_EQ(read_manifest(root_).size(), 2u);
}

TEST_F(ExportedFolder, LeavesNothingBehindWhenACaseFails) {
  const fs::path other = folder_ / "other";
  EXPECT_THROW(write_export(other,
                            {job("fp8_small"),
                             {"bad", []() -> ForeignCase { throw ConfigError("no such case"); }}},
                            {}),
               ConfigError);
  EXPECT_FALSE(fs::exists(other));
  EXPECT_FALSE(fs::exists(other.string() + ".partial"));
}

TEST_F(ExportedFolder, IsRefusedWithoutManifest) {
  fs::remove(root_ / "manifest.json");
  expect_parts(manifest_error(), {"manifest.json"});
}

TEST_F(ExportedFolder, IsRefusedFromANewerProgram) {
  rewrite_manifest("\"schema\": 1", "\"schema\": 2");
  rewrite_manifest("\"how_to\"", "\"a_key_of_tomorrow\": 1, \"how_to\"");
  expect_parts(manifest_error(), {"manifest.json: /schema: found schema 2, this program reads 1"});
}

TEST_F(ExportedFolder, IsRefusedWithAnUnknownKey) {
  rewrite_manifest("\"how_to\"", "\"how_too\": 1, \"how_to\"");
  expect_parts(manifest_error(), {"manifest.json", "how_too"});
}

TEST_F(ExportedFolder, IsRefusedWhenAPathLeavesIt) {
  rewrite_manifest("\"outputs/fp8_small.safetensors\"", "\"../fp8_small.safetensors\"");
  expect_parts(manifest_error(), {"manifest.json: /cases/0/outputs", "inside the folder"});
}

TEST_F(ExportedFolder, IsRefusedWithoutTheFileOfACase) {
  fs::remove(root_ / "cases/short_context_f32.safetensors");
  expect_parts(manifest_error(), {"/cases/1", "there is no file", "short_context_f32.safetensors"});
}

TEST_F(ExportedFolder, IsRefusedWithOutputsThatNoCaseLists) {
  write_bytes(root_ / "outputs/fp8_smal.safetensors", "");
  expect_parts(manifest_error(), {"outputs/fp8_smal.safetensors: no case of manifest.json",
                                  "did you mean \"outputs/fp8_small.safetensors\""});
}

TEST_F(ExportedFolder, IsRefusedWithATruncatedFile) {
  const ManifestEntry entry = read_manifest(root_)[0];
  TensorFile file;
  file.tensors = answered("fp8_small").outputs.tensors;
  write_safetensors(root_ / entry.outputs, file);
  fs::resize_file(root_ / entry.outputs, fs::file_size(root_ / entry.outputs) - 100);
  expect_parts(config_error_of([&] { read_foreign_outputs(root_, entry); }),
               {"outputs/fp8_small.safetensors", "byte"});
  fs::resize_file(root_ / entry.inputs, 1000);
  expect_parts(config_error_of([&] { read_foreign_case(root_ / entry.inputs); }),
               {"cases/fp8_small.safetensors", "byte"});
}

// One change to the tensors of a case file, and what must be said about it.
struct Damage {
  const char* name;
  void (*apply)(TensorFile& file);
  const char* text;
};
const Damage damages[] = {
    {"NoPaging", [](TensorFile& f) { f.metadata.erase("paging"); }, "has no \"paging\""},
    {"NoTable", [](TensorFile& f) { f.tensors.erase("block_table"); }, "block_table"},
    {"WrongShape", [](TensorFile& f) { f.tensors["positions"] = Tensor(DType::i64, {3}); },
     "positions"},
    {"WrongDtype",
     [](TensorFile& f) {
       f.tensors["keys"] = Tensor(DType::f32, {45, 128});
     },
     "keys"},
    {"UnknownTensor", [](TensorFile& f) { f.tensors["kes"] = Tensor(DType::f32, {1}); },
     "unknown tensor \"kes\"; did you mean \"keys\"?"},
    {"SharedPage",
     [](TensorFile& f) {
       f.tensors["token_page_table"] = Tensor(DType::i32, {1, 0});
     },
     "token_page_table"},
    {"WildPage",
     [](TensorFile& f) {
       Tensor table = f.tensors["block_table"].clone();
       table.as<std::int32_t>()[0] = 1000;
       f.tensors["block_table"] = table;
     },
     "row 0, column 0: found page 1000"},
    {"WrongSequences",
     [](TensorFile& f) {
       Tensor table = f.tensors["sequences"].clone();
       table.as<std::int64_t>()[1] = 46;
       f.tensors["sequences"] = table;
     },
     "sequences"},
    {"NewStage", [](TensorFile& f) { f.metadata["case"].replace(10, 7, "qqqqqqq"); }, "/stage"},
};

class DamagedCase : public testing::TestWithParam<Damage> {};

TEST_P(DamagedCase, IsRefusedByFileAndPlace) {
  TensorFile file = foreign_input_file(answered("fp8_small").foreign);
  GetParam().apply(file);
  const TemporaryFolder folder;
  write_safetensors(folder / "case.safetensors", file);
  expect_parts(config_error_of([&] { read_foreign_case(folder / "case.safetensors"); }),
               {"case.safetensors", GetParam().text});
}

INSTANTIATE_TEST_SUITE_P(Table, DamagedCase, testing::ValuesIn(damages),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace indexpool::verify
