// What a step reads, multiplies and sends, against the model's own tensors and caches.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/memory/parameters.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/step/plan.hpp"
#include "indexpool/model/step/work.hpp"

#include "expect_error.hpp"

namespace indexpool::step {
namespace {

Serving served(Phase phase = Phase::decode) {
  Serving serving;
  serving.phase = phase;
  serving.request.engine = Engine::packed;
  return serving;
}

// Sum of `part` over a plan's operations, each as often as it runs.
template <class Part>
double sum_over(const Plan& plan, const Size& size, Part part) {
  double sum = 0;
  for (const Operation& each : plan.operations) {
    sum += static_cast<double>(each.count) *
           static_cast<double>(part(each, each.of_sequences ? drafting_size(size) : size));
  }
  return sum;
}

double parameters_read(const Plan& plan, const Size& size) {
  return sum_over(plan, size, [](const Operation& each, const Size& rows) {
    return read_bytes(each.shape, rows).parameters.value;
  });
}

double cache_read(const Plan& plan, const Size& size, const std::string& name) {
  return sum_over(plan, size, [&](const Operation& each, const Size& rows) {
    return each.name.starts_with(name) ? read_bytes(each.shape, rows).cache.value : std::int64_t{0};
  });
}

// Bytes of the parameters that one token meets, from the lists of tensors alone.
double active_bytes(const Architecture& model) {
  double sum = 0;
  const auto add = [&](const std::vector<ParameterTensor>& tensors) {
    for (const ParameterTensor& tensor : tensors) {
      double bytes = static_cast<double>(parameter_bytes(model, tensor).value);
      if (tensor.name == "gate.tid2eid") continue;  // a row of it, counted with the rows
      if (tensor.group == "routed experts") {
        bytes *= static_cast<double>(model.mixture.per_token) /
                 static_cast<double>(model.mixture.routed);
      }
      sum += bytes;
    }
  };
  for (const LayerSpec& layer : model.layers) add(layer_parameters(model, layer));
  add(head_parameters(model));
  if (model.tie_word_embeddings) add(embedding_parameters(model));
  return sum;
}

TEST(StepPlan, ADecodeStepOfOneTokenReadsEveryActiveParameterOnce) {
  for (const std::string& name : architecture_names()) {
    const Architecture model = load_model(name);
    const Plan plan = plan_step(model, served());
    EXPECT_EQ(parameters_read(plan, {1, 1, 4096}), active_bytes(model)) << name;
  }
}

TEST(StepPlan, EnginesReadTheAbsorbedHalvesInBf16InsteadOfTheCheckpointsMatrix) {
  const Architecture model = load_model("deepseek-v3.2");  // FP8
  Serving serving = served();
  const double packed = parameters_read(plan_step(model, serving), {1, 1, 4096});
  serving.request.engine = Engine::vllm;
  const double engine = parameters_read(plan_step(model, serving), {1, 1, 4096});
  const double heads = 128, width = 128 + 128, rank = 512, layers = 61;
  const double scales = heads * width / 128 * rank / 128 * 4;
  EXPECT_EQ(engine - packed, layers * (heads * width * rank - scales));
}

TEST(StepPlan, StatesAndPooledCachesAreReadAsMemoryHoldsThem) {
  Serving serving = served();
  serving.request.tokens = 1 << 20;
  serving.request.sequences = 3;
  const Size size{3, 1, 1 << 20};
  const auto held = [&](const Architecture& model, const char* name) {
    return static_cast<double>(bytes_of(model_memory(model, serving.request), name).value);
  };
  for (const char* name : {"glm-5.3-flash", "qwen4-exp"}) {
    const Architecture model = load_model(name);
    const Plan plan = plan_step(model, serving);
    EXPECT_EQ(cache_read(plan, size, "delta rule") + cache_read(plan, size, "conv1d"),
              held(model, "recurrent states"))
        << name;
  }
  for (const char* name : {"indexpool-a-composite", "indexpool-b-additive", "indexpool-c-gated",
                           "indexpool-d-tfidf", "indexpool-e-plain"}) {
    const Architecture model = load_model(name);
    EXPECT_EQ(cache_read(plan_step(model, serving), size, "attention over all entries"),
              held(model, "pooled cache"))
        << name;
  }
}

TEST(StepPlan, SparseAttentionReadsTheSelectedEntriesOfEachRow) {
  // 11 layers, 2048 tokens and three of the tail, 512 bf16 elements.
  const Plan glm = plan_step(load_model("glm-5.3-flash"), served());
  EXPECT_EQ(cache_read(glm, {1, 1, 1 << 20}, "sparse attention"), 11.0 * 2051 * 1024);
  EXPECT_EQ(cache_read(glm, {5, 1, 1 << 20}, "sparse attention"), 5 * 11.0 * 2051 * 1024);
  // A context shorter than the selection is read whole.
  EXPECT_EQ(cache_read(glm, {1, 1, 1000}, "sparse attention"), 11.0 * 1000 * 1024);
}

TEST(StepPlan, LayersThatShareASelectionAttendToItAndTheOthersToAll) {
  // GLM-5.2: every layer is sparse though 21 have index keys. MiniMax-M3: three layers see all.
  const Plan glm = plan_step(load_model("glm-5.2"), served());
  EXPECT_EQ(cache_read(glm, {1, 1, 1 << 20}, "attention over all entries"), 0);
  const Plan minimax = plan_step(load_model("minimax-m3"), served());
  EXPECT_EQ(cache_read(minimax, {1, 1, 1 << 20}, "attention over all entries"),
            3.0 * (1 << 20) * 2 * 4 * 128 * 2);
}

TEST(StepPlan, CompressedLayersReadTheirEntriesAndTheWindow) {
  const Plan plan = plan_step(load_model("deepseek-v4-flash"), served());
  const double window = 128.0 * 584;
  const Size size{1, 1, 1 << 20};
  EXPECT_EQ(cache_read(plan, size, "attention over the window"), 2 * window);
  EXPECT_EQ(cache_read(plan, size, "sparse attention"), 21 * (512.0 * 584 + window));
  EXPECT_EQ(cache_read(plan, size, "attention over all entries"), 20 * (8192.0 * 584 + window));
}

TEST(StepPlan, AChunksProductsAreTwoOperationsAParameterAndRow) {
  const DeviceSpec device = load_device("h200-sxm");
  const Size size{1, 8192, 1 << 20};  // whole tiles of rows
  for (const std::string& name : architecture_names()) {
    const Plan plan = plan_step(load_model(name), served(Phase::prefill));
    double expected = 0, dense = 0, experts_least = 0, experts = 0;
    for (const Operation& each : plan.operations) {
      const std::int64_t rows = each.of_sequences ? 128 : size.rows();
      const double count = static_cast<double>(each.count);
      if (const auto* product = std::get_if<MatrixProduct>(&each.shape)) {
        expected += count * 2.0 * static_cast<double>(rows) * static_cast<double>(product->copies) *
                    static_cast<double>(product->n) * static_cast<double>(product->k);
        dense += count * work_of(*product, rows, device).matrix_flop.value;
      }
      if (const auto* product = std::get_if<ExpertProduct>(&each.shape)) {
        experts_least += count * 2.0 * static_cast<double>(rows * product->per_token) *
                         static_cast<double>(product->n) * static_cast<double>(product->k);
        experts += count * work_of(*product, rows, device).expected.matrix_flop.value;
      }
    }
    EXPECT_NEAR(dense, expected, 1e-9 * expected) << name;
    // Rows of an expert fill their last tile in part.
    EXPECT_GE(experts, experts_least * 0.999) << name;
    EXPECT_LE(experts, experts_least * 1.6) << name;
  }
}

TEST(StepPlan, TensorParallelRanksShareWhatTheCheckpointSplits) {
  const Architecture model = load_model("glm-5.3-flash");
  Serving serving = served();
  const Size size{1, 1, 1 << 20};
  const double whole = parameters_read(plan_step(model, serving), size);
  serving.request.tensor_parallel = 8;
  const Plan plan = plan_step(model, serving);
  const double rank = parameters_read(plan, size);
  EXPECT_LT(rank, whole / 4);
  EXPECT_GT(rank, whole / 8);  // the indexer, routers and norms are whole on each
  for (const Operation& each : plan.operations) {
    if (each.group == "routed experts" && each.name == "experts.down_proj") {
      EXPECT_EQ(std::get<ExpertProduct>(each.shape).k, 2048 / 8);
    }
  }
  serving.expert_parallel = true;
  for (const Operation& each : plan_step(model, serving).operations) {
    if (each.group == "routed experts" && each.name == "experts.down_proj") {
      EXPECT_EQ(std::get<ExpertProduct>(each.shape).k, 2048);
      EXPECT_EQ(std::get<ExpertProduct>(each.shape).here, 288 / 8);
    }
  }
}

TEST(StepPlan, RanksThatShareAContextReadTheirPartAndExchangeOutputs) {
  const Architecture model = load_model("minimax-m3");
  Serving serving = served();
  serving.request.context_parallel = 4;
  const Plan plan = plan_step(model, serving);
  EXPECT_EQ(cache_read(plan, {1, 1, 1 << 20}, "attention over all entries"),
            3.0 * (1 << 18) * 2 * 4 * 128 * 2);
  std::int64_t exchanges = 0;
  for (const Operation& each : plan.operations) {
    if (each.name == "all-reduce of partial outputs") exchanges += each.count;
  }
  EXPECT_EQ(exchanges, 60);
}

TEST(StepPlan, StagesSendTheirResidualStreamsOn) {
  Serving serving = served();
  serving.request.pipeline_parallel = 3;
  for (const Operation& each : plan_step(load_model("glm-5.3-flash"), serving).operations) {
    const auto* message = std::get_if<Collective>(&each.shape);
    if (message == nullptr) continue;
    EXPECT_EQ(message->kind, CollectiveKind::send);
    EXPECT_EQ(each.count, 2);
    EXPECT_EQ(message->bytes_per_row, 4 * 4096 * 2);
  }
}

TEST(StepPlan, DraftsRunTheDraftingLayerOnceEach) {
  const Architecture model = load_model("glm-5.3-flash");
  Serving serving = served();
  const std::size_t plain = plan_step(model, serving).operations.size();
  serving.request.drafts = 3;
  const Plan plan = plan_step(model, serving);
  EXPECT_GT(plan.operations.size(), plain);
  std::int64_t heads = 0;
  for (const Operation& each : plan.operations) {
    if (each.name == "eh_proj") {
      EXPECT_EQ(each.count, 3);
      EXPECT_TRUE(each.of_sequences);
    }
    if (each.name == "lm_head") heads += each.count;
  }
  EXPECT_EQ(heads, 4);  // of the step, and of each draft
  EXPECT_EQ(size_of(serving, 1 << 20, 16).rows(), 64);
}

TEST(StepPlan, SplitsThatDoNotComeOutEvenAreRefused) {
  Serving serving = served();
  serving.request.tensor_parallel = 3;
  const Architecture model = load_model("glm-5.3-flash");
  expect_parts(config_error_of([&] { plan_step(model, serving); }), {"64 attention heads"});
  serving.request.tensor_parallel = 64;  // 288 experts
  serving.expert_parallel = true;
  expect_parts(config_error_of([&] { plan_step(model, serving); }), {"288 routed experts"});
  expect_parts(config_error_of([&] { size_of(served(), 0, 1); }), {"tokens of a sequence"});
  expect_parts(config_error_of([&] { size_of(served(), (std::int64_t{1} << 40) + 1, 1); }),
               {"tokens"});
  expect_parts(config_error_of([&] { size_of(served(), 1, 0); }), {"sequences"});
}

TEST(StepPlan, AbsurdSizesAreRefusedInsteadOfOverflowing) {
  const Plan plan = plan_step(load_model("indexpool-a-composite"), served());
  const DeviceSpec device = load_device("h200-sxm");
  const Size absurd{1 << 24, 1, std::int64_t{1} << 40};
  bool refused = false;
  for (const Operation& each : plan.operations) {
    if (const auto* attention = std::get_if<Attention>(&each.shape)) {
      refused = true;
      expect_parts(config_error_of([&] { work_of(*attention, absurd, device); }), {"2^58"});
    }
  }
  EXPECT_TRUE(refused);
}

TEST(TouchedExperts, AreThoseAnEvenChoiceLeavesNotIdle) {
  EXPECT_EQ(touched_experts(4, 1, 1), 1);
  EXPECT_DOUBLE_EQ(touched_experts(4, 1, 2), 1.75);  // the second row meets the first in one of 4
  EXPECT_DOUBLE_EQ(touched_experts(4, 2, 2), 3);
  EXPECT_NEAR(touched_experts(288, 8, 100000), 288, 1e-9);
}

RC_GTEST_PROP(TouchedExperts, GrowWithTheRowsAndStayBelowWhatThereIs, ()) {
  const auto routed = *rc::gen::inRange<std::int64_t>(1, 512);
  const auto per_token = *rc::gen::inRange<std::int64_t>(1, routed + 1);
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 4096);
  const double touched = touched_experts(routed, per_token, rows);
  RC_ASSERT(touched <= static_cast<double>(routed) * (1 + 1e-12));
  RC_ASSERT(touched <= static_cast<double>(rows * per_token) * (1 + 1e-12));
  RC_ASSERT(touched >= static_cast<double>(per_token) * (1 - 1e-12));
  RC_ASSERT(touched_experts(routed, per_token, rows + 1) >= touched * (1 - 1e-12));
}

// By counting, row by row.
RC_GTEST_PROP(MeanEntries, IsTheMeanOfWhatEachRowSees, ()) {
  Attention attention;
  attention.tokens_per_entry = *rc::gen::inRange<std::int64_t>(1, 8);
  attention.selected = *rc::gen::inRange<std::int64_t>(0, 40);
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
  const Size size{1, rows, rows + *rc::gen::inRange<std::int64_t>(0, 200)};
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double position = static_cast<double>(size.tokens - row);
    const double seen = position / static_cast<double>(attention.tokens_per_entry);
    const auto limit = static_cast<double>(attention.selected);
    sum += attention.selected > 0 ? std::min(seen, limit) : seen;
  }
  const double mean = sum / static_cast<double>(rows);
  // A row that fills its selection in part may count as either.
  RC_ASSERT(std::abs(mean_entries(attention, size) - mean) <= 1.0 / static_cast<double>(rows));
}

}  // namespace
}  // namespace indexpool::step
