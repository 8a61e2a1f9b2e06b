// export and check as a user runs them: exit codes, messages, reports.
#include <fstream>

#include <gtest/gtest.h>

#include "indexpool/model/case.hpp"
#include "indexpool/model/safetensors.hpp"

#include "program.hpp"

namespace indexpool::cli {
namespace {

// Two golden cases, exported; answer() writes what their public implementation answered.
class Exported : public testing::Test {
 protected:
  Exported() {
    const Outcome outcome = indexpool(
        {"export", "--case", golden("fp8_small"), golden("glm53_small_f32"), "--out", root_});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "2 cases in ")) << outcome.out;
  }

  template <class Change>
  void answer(const std::string& name, const Change& change) const {
    TensorFile file;
    const Case with_answers = read_case(golden(name));
    for (const char* output :
         {"pooled", "pool_rows", "q_codes", "q_scales", "logits", "selection"}) {
      const auto found = with_answers.expected.find(output);
      if (found != with_answers.expected.end()) file.tensors[output] = found->second.clone();
    }
    change(file);
    write_safetensors(std::filesystem::path(root_) / "outputs" / (name + ".safetensors"), file);
  }
  void answer(const std::string& name) const {
    answer(name, [](TensorFile&) {});
  }
  Outcome check(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"check", root_});
    return indexpool(more);
  }
  void expect_refused(const std::vector<std::string>& options, const char* said) const {
    const std::string out = folder_.file("report");
    std::vector<std::string> all = options;
    all.insert(all.end(), {"--out", out});
    const Outcome outcome = check(all);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, said)) << said << " is not in: " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << "something was written";
  }

  Folder folder_;
  std::string root_ = folder_.file("cases");
};

TEST_F(Exported, AnswersOfThePublicImplementationPass) {
  answer("fp8_small");
  answer("glm53_small_f32");
  const std::string out = folder_.file("report");
  const Outcome outcome = check({"--name", "public", "--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Passed."));
  for (const char* file : {"report.html", "report.md", "junit.xml", "records.jsonl"}) {
    EXPECT_TRUE(contains(read_text(std::filesystem::path(out) / file), "public")) << file;
  }
}

TEST_F(Exported, WithoutOutputsProvesNothing) {
  const Outcome outcome = check();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "outputs/fp8_small.safetensors does not exist"));
}

TEST_F(Exported, ACorruptedAnswerFailsWithALineThatRepeatsIt) {
  answer("fp8_small",
         [](TensorFile& file) { file.tensors["pool_rows"].as<std::uint8_t>()[5 * 132 + 17] ^= 1; });
  const Outcome outcome = check({"--operation", "pool"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "quantiser: sequence 0, pool 5, channel 17: code"))
      << outcome.out;
  const std::string repeat = "indexpool check " + root_ + " --only fp8_small --operation pool";
  EXPECT_TRUE(contains(outcome.out, "repeat: " + repeat)) << outcome.out;
  EXPECT_EQ(check({"--only", "fp8_small", "--operation", "pool"}).code, 1);
  EXPECT_EQ(check({"--only", "fp8_small", "--operation", "topk"}).code, 0);
}

TEST_F(Exported, BadInputIsRefusedBeforeAnythingIsWritten) {
  answer("fp8_small");
  expect_refused({"--layout", "planr"}, "unknown layout 'planr': did you mean planar?");
  expect_refused({"--tail", "fixd"}, "did you mean fixed?");
  expect_refused({"--only", "fp8_smal"}, "unknown case 'fp8_smal': did you mean fp8_small?");
  expect_refused({"--mode", "vllm_fp8"},
                 "mode vllm_fp8 takes inputs in bf16, but the case holds f32");
  answer("fp8_small", [](TensorFile& file) { file.tensors["logts"] = file.tensors["logits"]; });
  expect_refused({}, "unknown tensor 'logts': did you mean logits?");
  answer("fp8_small",
         [](TensorFile& file) { file.tensors["q_scales"] = Tensor(DType::f32, {45}); });
  expect_refused({}, "tensor \"q_scales\": found f32 [45], expected f32 [45, 4]");
}

TEST_F(Exported, MissingOrStrangeFilesAreRefused) {
  const std::filesystem::path root(root_);
  std::ofstream(root / "outputs" / "other.safetensors") << "x";
  expect_refused({}, "outputs/other.safetensors: no case of manifest.json has this file");
  std::filesystem::remove(root / "outputs" / "other.safetensors");
  std::ofstream(root / "outputs" / "fp8_small.safetensors") << "x";
  expect_refused({}, "outputs/fp8_small.safetensors: byte 1");
  std::filesystem::remove(root / "manifest.json");
  expect_refused({}, "manifest.json");
}

TEST(Export, TakesOneSourceAndANewFolder) {
  const Folder folder;
  const std::string out = folder.file("cases");
  EXPECT_EQ(indexpool({"export", "smoke", "--lengths", "9", "--out", out}).code, 2);
  EXPECT_EQ(indexpool({"export", "smok", "--out", out}).code, 2);
  EXPECT_EQ(indexpool({"export", "--case", "nowhere.safetensors", "--out", out}).code, 2);
  EXPECT_TRUE(folder.names().empty()) << "something was written";
  EXPECT_EQ(indexpool({"export", "--lengths", "9", "--out", out}).code, 0);
  const Outcome again = indexpool({"export", "--lengths", "9", "--out", out});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.err, "is not empty")) << again.err;
}

// What was exported reads as a case like any other.
TEST(Export, WritesCasesThatVerifyReads) {
  const Folder folder;
  const std::string out = folder.file("cases");
  ASSERT_EQ(indexpool({"export", "--lengths", "9,21", "--heads", "4", "--out", out}).code, 0);
  const Outcome outcome = indexpool({"verify", "--case", out + "/cases/0001.safetensors"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace indexpool::cli
