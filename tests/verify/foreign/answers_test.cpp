// Outputs of the public implementations pass as those of a foreign kernel, in their own numeric
// mode, with everything they gave and with any part of it.
#include "answers.hpp"

#include <gtest/gtest.h>

namespace indexpool::verify {
namespace {

class PublicAnswers : public testing::TestWithParam<std::string> {};

TEST_P(PublicAnswers, PassEveryOperationTheyAnswered) {
  const Answered golden = answered(GetParam());
  // The serving engine's CPU reference compacts its rows.
  const ForeignContract contract{.tail = GetParam().starts_with("fp8") ? "compacted" : "batch"};
  const auto records = through_files(golden, contract);
  EXPECT_EQ(records.size(), golden.foreign.test_case.inputs.mode.quantised() ? 4u : 3u);
  for (const Record& record : records) {
    // The decode case recorded neither pools, which grow, nor logits.
    const bool unrecorded = GetParam() == "decode_f32" && record.op != "topk";
    EXPECT_EQ(to_string(record.verdict.status), unrecorded ? "skipped" : "passed")
        << record.op << ": " << record.verdict.reason;
    EXPECT_EQ(record.environment.target, "foreign");
  }
}

// Whatever is left out, what remains is never called wrong.
TEST_P(PublicAnswers, AreNeverWrongInPart) {
  const Answered golden = answered(GetParam());
  for (const auto& [name, tensor] : golden.outputs.tensors) {
    ForeignOutputs alone{name + " alone", {{name, tensor}}};
    if (name == "q_codes") alone.tensors["q_scales"] = golden.outputs.tensors.at("q_scales");
    ForeignOutputs without = golden.outputs;
    without.tensors.erase(name);
    for (const ForeignOutputs& outputs : {alone, without}) {
      for (const Record& record : check_foreign(golden.foreign, outputs, {}, {})) {
        EXPECT_NE(worst(record.verdict.status, Status::untrusted), Status::failed)
            << name << ", " << record.op << ": " << record.verdict.reason;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PublicAnswers, testing::ValuesIn(golden_names()),
                         [](const auto& tested) { return tested.param; });

TEST(PublicAnswers, AreSeventeen) { EXPECT_EQ(golden_names().size(), 17u); }

}  // namespace
}  // namespace indexpool::verify
