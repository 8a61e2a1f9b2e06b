// The GPU against the executor: the attention kernels promise the same bytes on both.
#include <algorithm>

#include <gtest/gtest.h>

#include "indexpool/model/error.hpp"

#include "attention_bench.hpp"

namespace indexpool::kernels {
namespace {

class AttentionCuda : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = make_cuda_target();
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::unique_ptr<Target> device_;
};

constexpr DType storages[] = {DType::f32, DType::f16, DType::bf16};

TEST_F(AttentionCuda, LinearAttentionHasTheExecutorsBytes) {
  for (const DType storage : storages) {
    for (const std::int64_t keys : {32, 64, 128}) {
      for (const std::int64_t values : {32, 64, 128}) {
        std::vector<LinearAttentionInputs> sequences;
        for (const std::int64_t tokens : {1, 16, 0, 37})
          sequences.push_back(random_linear({tokens, 2, keys, values, storage, 0.3, 5}));
        for (const bool chunked : {false, true}) {
          EXPECT_TRUE(run_linear(sequences, chunked, *device_) == run_linear(sequences, chunked))
              << keys << " x " << values << (chunked ? ", in chunks" : ", by token");
        }
      }
    }
  }
}

TEST_F(AttentionCuda, SparseAttentionHasTheExecutorsBytes) {
  for (const DType storage : storages) {
    for (const std::int64_t dim : {32, 64, 128}) {
      SparseAttentionInputs in;
      in.queries = normal_tensor(storage, {3, 4, dim}, 1, 1);
      in.keys = normal_tensor(storage, {300, 2, dim}, 1, 2);
      in.values = normal_tensor(storage, {300, 2, dim}, 1, 3);
      in.selection = random_selection(3, 277, 200, 300, 4);
      in.scale = 0.125f;
      EXPECT_TRUE(same_bytes(run_sparse(in, *device_), run_sparse(in))) << dim;
    }
  }
}

TEST_F(AttentionCuda, GatesHaveTheExecutorsBytes) {
  GateFusionInputs fusion;
  fusion.gate_logits = normal_tensor(DType::f32, {40, 3}, 60, 1);
  fusion.a = normal_tensor(DType::f32, {40, 3, 64}, 1, 2);
  fusion.b = normal_tensor(DType::f32, {40, 3, 64}, 1, 3);
  EXPECT_TRUE(same_bytes(run_fusion(fusion, *device_), run_fusion(fusion)));
  for (const DType storage : storages) {
    SafeGateInputs gate;
    gate.features = normal_tensor(storage, {40, 3, 64}, 3, 4);
    gate.a_log = normal_tensor(DType::f32, {3}, 1, 5);
    gate.dt_bias = normal_tensor(DType::f32, {3, 64}, 1, 6);
    EXPECT_TRUE(same_bytes(run_safe_gate(gate, *device_), run_safe_gate(gate)));
  }
}

TEST_F(AttentionCuda, CompositeAttentionHasTheExecutorsBytes) {
  for (const DType storage : storages) {
    for (const std::int64_t dim : {32, 64, 128}) {
      for (const std::int64_t tokens : {1, 97, 160}) {
        CompositeAttentionInputs in;
        in.composites = normal_tensor(storage, {tokens, 2, dim}, 1, 1);
        in.query_weight = normal_tensor(storage, {2, dim, dim}, 0.1, 2);
        in.key_weight = normal_tensor(storage, {2, dim, dim}, 0.1, 3);
        in.values = normal_tensor(storage, {tokens, 2, dim}, 1, 4);
        EXPECT_TRUE(same_bytes(run_composite(in, *device_), run_composite(in)))
            << tokens << " tokens of " << dim;
      }
    }
  }
}

TEST_F(AttentionCuda, FeedbackCountsAsTheExecutor) {
  for (const std::int64_t groups : {1, 300, 70'000}) {
    AccessTerms terms;
    terms.accesses = Tensor(DType::i32, {groups, 4});
    terms.groups_accessed = Tensor(DType::i32, {groups, 4});
    FeedbackInputs in = {normal_tensor(DType::f32, {groups, 4}, 1, 1),
                         normal_tensor(DType::i32, {groups, 4}, 100, 2)};
    for (std::int64_t i = 0; i < in.attention_mass.size(); ++i)
      in.attention_mass.set(i, std::max(0.0, in.attention_mass.at(i)) / (10.0 * double(groups)));
    EXPECT_TRUE(run_feedback(in, terms, *device_) == run_feedback(in, terms)) << groups;
  }
}

}  // namespace
}  // namespace indexpool::kernels
