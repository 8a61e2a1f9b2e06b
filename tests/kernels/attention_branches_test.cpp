// Sparse attention, the gates of a hybrid layer: within the reference's enclosures, the same bytes
// in any lane order, traffic as declared.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/attention/attention.hpp"

#include "attention_bench.hpp"
#include "attention_judge.hpp"

namespace indexpool::kernels {
namespace {

SparseAttentionInputs random_sparse(std::int64_t rows, std::int64_t heads, std::int64_t key_heads,
                                    std::int64_t dim, std::int64_t values, std::int64_t width,
                                    std::int64_t most, DType storage, std::uint64_t seed) {
  constexpr std::int64_t tokens = 60;
  SparseAttentionInputs in;
  in.queries = normal_tensor(storage, {rows, heads, dim}, 1, seed);
  in.keys = normal_tensor(storage, {tokens, key_heads, dim}, 1, seed + 1);
  in.values = normal_tensor(storage, {tokens, key_heads, values}, 1, seed + 2);
  in.selection = random_selection(rows, width, most, tokens, seed + 3);
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  return in;
}

RC_GTEST_PROP(SparseKernel, StaysWithinTheBoundInAnyLaneOrder, ()) {
  const auto key_heads = *rc::gen::inRange<std::int64_t>(1, 3);
  const auto in = random_sparse(
      *rc::gen::inRange(1, 4), key_heads * *rc::gen::inRange(1, 3), key_heads,
      *rc::gen::element(32, 64, 128), *rc::gen::element(32, 64, 128), *rc::gen::inRange(1, 70),
      *rc::gen::inRange(0, 60), *rc::gen::element(DType::f32, DType::bf16, DType::f16),
      *rc::gen::arbitrary<std::uint64_t>());
  const auto outputs = run_sparse(in);
  RC_ASSERT(worst_share(reference::sparse_attention(in), outputs) <= 1);
  for (const auto& order : lane_orders()) RC_ASSERT(same_bytes(run_sparse(in, order), outputs));
}

TEST(SparseKernel, UnselectedTokensDoNotLeak) {
  auto in = random_sparse(3, 2, 1, 64, 32, 40, 20, DType::bf16, 5);
  const auto outputs = run_sparse(in);
  const auto selection = in.selection.as<std::int32_t>();
  for (std::int64_t token = 0; token < in.keys.dim(0); ++token) {
    if (std::find(selection.begin(), selection.end(), token) != selection.end()) continue;
    for (std::int64_t c = 0; c < 64; ++c) in.keys.set(token * 64 + c, std::nan(""));
    for (std::int64_t c = 0; c < 32; ++c) in.values.set(token * 32 + c, std::nan(""));
  }
  EXPECT_TRUE(same_bytes(run_sparse(in), outputs));
}

TEST(SparseKernel, NothingSelectedIsZeroAndOneTokenIsItsValue) {
  auto in = random_sparse(2, 1, 1, 32, 32, 5, 0, DType::bf16, 6);
  in.selection.set(2, 17);
  const auto outputs = run_sparse(in);
  for (std::size_t c = 0; c < 32; ++c) {
    EXPECT_EQ(outputs[c], in.values.at(17 * 32 + static_cast<std::int64_t>(c)));
    EXPECT_EQ(outputs[32 + c], 0);
  }
}

TEST(SparseKernel, PlantedErrorsAreCaught) {
  const auto in = random_sparse(3, 2, 2, 64, 32, 40, 20, DType::bf16, 7);
  const auto bounds = reference::sparse_attention(in);
  EXPECT_GT(worst_share(bounds, run_sparse(in)), 1e-4) << "the bound says nothing";
  auto wrong = in;
  wrong.scale = 1;
  EXPECT_GT(worst_share(bounds, run_sparse(wrong)), 10) << "scale forgotten";
  wrong = in;
  wrong.selection = in.selection.clone();
  for (std::int64_t i = 0; i < wrong.selection.size(); ++i) {
    if (wrong.selection.at(i) < 0) continue;
    wrong.selection.set(i, -1);
    break;
  }
  EXPECT_GT(worst_share(bounds, run_sparse(wrong)), 10) << "a token lost";
  wrong.selection = in.selection.clone();
  for (std::int64_t i = 0; i < wrong.selection.size(); ++i) {
    if (wrong.selection.at(i) >= 0) wrong.selection.set(i, (int(wrong.selection.at(i)) + 1) % 60);
  }
  EXPECT_GT(worst_share(bounds, run_sparse(wrong)), 10) << "tokens off by one";
}

TEST(SparseKernel, AsWideAsTheModelsSelection) {
  const auto in = random_sparse(1, 1, 1, 128, 128, 2051, 60, DType::bf16, 8);
  EXPECT_LE(worst_share(reference::sparse_attention(in), run_sparse(in)), 1);
}

GateFusionInputs random_fusion(std::int64_t rows, std::int64_t heads, std::int64_t values,
                               double spread, std::uint64_t seed) {
  GateFusionInputs in;
  in.gate_logits = normal_tensor(DType::f32, {rows, heads}, spread, seed);
  in.a = normal_tensor(DType::f32, {rows, heads, values}, 1, seed + 1);
  in.b = normal_tensor(DType::f32, {rows, heads, values}, 2, seed + 2);
  return in;
}

RC_GTEST_PROP(GateKernels, StayWithinTheBoundsInAnyLaneOrder, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto heads = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto rows = *rc::gen::inRange<std::int64_t>(0, 30);
  const auto fusion = random_fusion(rows, heads, *rc::gen::element(4, 12, 32, 128),
                                    *rc::gen::element(1.0, 40.0), seed);
  const auto mixed = run_fusion(fusion);
  RC_ASSERT(worst_share(reference::gate_fusion(fusion), mixed) <= 1);
  SafeGateInputs gate;
  const std::int64_t keys = *rc::gen::element(8, 24, 64);
  gate.features = normal_tensor(*rc::gen::element(DType::f32, DType::bf16, DType::f16),
                                {rows, heads, keys}, 3, seed);
  gate.a_log = normal_tensor(DType::f32, {heads}, 1, seed + 1);
  gate.dt_bias = normal_tensor(DType::f32, {heads, keys}, 1, seed + 2);
  const auto decays = run_safe_gate(gate);
  RC_ASSERT(worst_share(reference::safe_gate(gate), decays) <= 1);
  for (const auto& order : lane_orders()) {
    RC_ASSERT(same_bytes(run_fusion(fusion, order), mixed));
    RC_ASSERT(same_bytes(run_safe_gate(gate, order), decays));
  }
}

TEST(GateFusionKernel, TheGatesExtremesAreABranchBitForBit) {
  auto in = random_fusion(2, 2, 8, 1, 3);
  const double logits[] = {gate_saturation, -gate_saturation, HUGE_VAL, -HUGE_VAL};
  for (std::int64_t i = 0; i < 4; ++i) in.gate_logits.set(i, logits[i]);
  for (std::int64_t i = 0; i < in.a.size(); ++i) {
    Tensor& other = i / 8 % 2 == 0 ? in.b : in.a;
    other.set(i, i % 3 == 0 ? std::nan("") : i % 3 == 1 ? HUGE_VAL : -1.0);
    (i / 8 % 2 == 0 ? in.a : in.b).set(i, i % 2 == 0 ? -0.0 : 1.5);
  }
  const auto outputs = run_fusion(in);
  const auto a = in.a.as<float>(), b = in.b.as<float>();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const float branch = i / 8 % 2 == 0 ? a[i] : b[i];
    EXPECT_TRUE(same_bytes({outputs[i]}, {branch})) << i;
  }
}

TEST(GateFusionKernel, SwappedBranchesAreCaught) {
  const auto in = random_fusion(3, 2, 16, 1, 4);
  auto wrong = in;
  std::swap(wrong.a, wrong.b);
  EXPECT_GT(worst_share(reference::gate_fusion(in), run_fusion(in)), 1e-3);
  EXPECT_GT(worst_share(reference::gate_fusion(in), run_fusion(wrong)), 10);
}

TEST(HybridLayer, GateLinearAndSparseBranchFeedTheFusion) {
  // One layer end to end: features to decays, decays to the linear branch, both branches fused;
  // each kernel is judged from what the one before stored.
  LinearDraw draw;
  draw.tokens = 6;
  auto linear = random_linear(draw);
  SafeGateInputs gate;
  gate.features = normal_tensor(DType::bf16, {6, 2, 32}, 1, 11);
  gate.a_log = normal_tensor(DType::f32, {2}, 1, 12);
  gate.dt_bias = normal_tensor(DType::f32, {2, 32}, 1, 13);
  const auto decays = run_safe_gate(gate);
  ASSERT_LE(worst_share(reference::safe_gate(gate), decays), 1);
  std::copy(decays.begin(), decays.end(), linear.log_decay.as<float>().begin());
  const auto recurrent = run_linear({linear}, false).outputs[0];
  ASSERT_LE(worst_share(reference::linear_attention(linear).outputs, recurrent), 1);
  const auto sparse = random_sparse(6, 2, 1, 32, 32, 12, 10, DType::bf16, 14);
  const auto selected = run_sparse(sparse);
  GateFusionInputs fusion = random_fusion(6, 2, 32, 1, 15);
  std::copy(recurrent.begin(), recurrent.end(), fusion.a.as<float>().begin());
  std::copy(selected.begin(), selected.end(), fusion.b.as<float>().begin());
  EXPECT_LE(worst_share(reference::gate_fusion(fusion), run_fusion(fusion)), 1);
}

}  // namespace
}  // namespace indexpool::kernels
