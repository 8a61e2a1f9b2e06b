#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/memory/parameters.hpp"
#include "indexpool/model/memory/plan.hpp"
#include "indexpool/model/serving_plan.hpp"

#include "expect_error.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

const Architecture& model(const std::string& name) {
  static std::map<std::string, Architecture> loaded;
  return loaded.try_emplace(name, load_model(name)).first->second;
}

const Architecture& glm() { return model("glm-5.3-flash"); }

MemoryRequest at(std::int64_t tokens, Engine engine = Engine::vllm) {
  MemoryRequest request;
  request.tokens = tokens;
  request.engine = engine;
  return request;
}

MemoryTerm term(const ModelMemory& memory, const std::string& name) {
  for (const MemoryTerm& each : memory.on_one_gpu().terms) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no term " << name;
  return {};
}

rc::Gen<std::string> any_model() { return rc::gen::elementOf(architecture_names()); }
rc::Gen<Engine> any_engine() {
  return rc::gen::element(Engine::packed, Engine::vllm, Engine::sglang);
}

RC_GTEST_PROP(ModelMemory, GrowsWithTheTokens, ()) {
  const Architecture& any = model(*any_model());
  MemoryRequest request = at(*rc::gen::inRange<std::int64_t>(1, 20 * mebi), *any_engine());
  const Bytes before = model_memory(any, request).on_one_gpu().total;
  request.tokens += *rc::gen::element<std::int64_t>(1, 3, 256, 1024, 5000, mebi);
  RC_ASSERT(model_memory(any, request).on_one_gpu().total >= before);
}

RC_GTEST_PROP(ModelMemory, TotalIsTheSumOfItsTerms, ()) {
  MemoryRequest request = at(*rc::gen::inRange<std::int64_t>(1, 4 * mebi), *any_engine());
  request.sequences = *rc::gen::inRange(1, 65);
  request.pipeline_parallel = *rc::gen::inRange(1, 9);
  const ModelMemory memory = model_memory(model(*any_model()), request);
  Bytes all;
  for (const StageMemory& stage : memory.stages) {
    Bytes sum;
    for (const MemoryTerm& each : stage.terms) {
      RC_ASSERT(each.bytes.value > 0);
      sum += each.bytes;
    }
    RC_ASSERT(sum == stage.total);
    RC_ASSERT(stage.total <= memory.on_one_gpu().total);
    all += stage.total;
  }
  RC_ASSERT(memory.all_gpus == all * memory.gpus_per_stage);
}

RC_GTEST_PROP(ModelMemory, CachesAndParametersAddOverTheStagesOfAPipeline, ()) {
  const Architecture& any = model(*any_model());
  MemoryRequest request = at(*rc::gen::inRange<std::int64_t>(1, 4 * mebi), *any_engine());
  const auto sum = [&](MemoryKind kind) {
    Bytes bytes;
    for (const StageMemory& stage : model_memory(any, request).stages) {
      for (const MemoryTerm& each : stage.terms) {
        if (each.kind == kind) bytes += each.bytes;
      }
    }
    return bytes;
  };
  const Bytes cache = sum(MemoryKind::cache), state = sum(MemoryKind::state);
  const Bytes parameters = sum(MemoryKind::parameters);
  request.pipeline_parallel = *rc::gen::inRange<std::int64_t>(2, 12);
  RC_ASSERT(sum(MemoryKind::cache) == cache);
  RC_ASSERT(sum(MemoryKind::state) == state);
  RC_ASSERT(sum(MemoryKind::parameters) == parameters);
}

RC_GTEST_PROP(ModelMemory, SequencesMultiplyWhatEachKeeps, ()) {
  const Architecture& any = model(*any_model());
  MemoryRequest request = at(*rc::gen::inRange<std::int64_t>(1, 4 * mebi), Engine::packed);
  const ModelMemory one = model_memory(any, request);
  request.sequences = *rc::gen::inRange<std::int64_t>(2, 300);
  const ModelMemory many = model_memory(any, request);
  for (const MemoryKind kind : {MemoryKind::cache, MemoryKind::state}) {
    RC_ASSERT(bytes_of(many, kind) == bytes_of(one, kind) * request.sequences);
  }
}

RC_GTEST_PROP(ModelMemory, PagesCostAtMostOneBlockALayerAndSequence, ()) {
  MemoryRequest request = at(*rc::gen::inRange<std::int64_t>(1, 20 * mebi));
  request.sequences = *rc::gen::inRange<std::int64_t>(1, 9);
  const ModelMemory paged = model_memory(glm(), request);
  request.engine = Engine::packed;
  const ModelMemory packed = model_memory(glm(), request);
  constexpr std::int64_t block = 4352;  // tokens
  const std::pair<const char*, std::int64_t> caches[] = {{"latents", 1024 * block},
                                                         {"index keys", 33 * block}};
  for (const auto& [name, page] : caches) {
    const std::int64_t spare = bytes_of(paged, name).value - bytes_of(packed, name).value;
    RC_ASSERT(spare >= 0);
    // A block that holds tokens but no whole pool is all spare.
    RC_ASSERT(spare <= 11 * request.sequences * page);
  }
}

// The largest share of a rank, times the ranks, is the whole where everything divides, and what is
// replicated counts once for each rank.
RC_GTEST_PROP(ModelMemory, RanksShareWhatIsSplitAndRepeatWhatIsNot, ()) {
  const Architecture& any = model(*any_model());
  const std::int64_t ranks = *rc::gen::element<std::int64_t>(2, 4, 8);
  for (const LayerSpec& layer : {any.layers.front(), any.layers[3], any.layers.back()}) {
    for (const ParameterTensor& tensor : layer_parameters(any, layer)) {
      // Scales of a share that ends inside a block belong to both shares.
      const bool whole_blocks = tensor.format == ParameterFormat::bf16 ||
                                tensor.format == ParameterFormat::f32 ||
                                tensor.format == ParameterFormat::i64;
      const Bytes whole = parameter_bytes(any, tensor), share = parameter_bytes(any, tensor, ranks);
      if (tensor.sharding == Sharding::replicated) {
        RC_ASSERT(share == whole);
      } else if (tensor.sharding == Sharding::kv_heads) {
        RC_ASSERT(share * ranks >= whole);
      } else if (whole_blocks) {
        RC_ASSERT(share * ranks == whole);
      } else {
        RC_ASSERT(share * ranks >= whole);
      }
    }
  }
}

TEST(ModelMemory, TheIndexerIsWholeOnEveryRank) {
  MemoryRequest request = at(mebi);
  const ModelMemory one = model_memory(glm(), request);
  request.tensor_parallel = 8;
  const ModelMemory eight = model_memory(glm(), request);
  EXPECT_EQ(bytes_of(one, "indexer"), bytes_of(eight, "indexer"));
  EXPECT_EQ(bytes_of(one, "routed experts"), bytes_of(eight, "routed experts") * 8);
  EXPECT_EQ(eight.gpus_per_stage, 8);
  EXPECT_EQ(eight.all_gpus, eight.on_one_gpu().total * 8);
}

TEST(ModelMemory, ContextParallelRanksShareTheBlocksOfASequence) {
  MemoryRequest request = at(4352 * 8);
  const ModelMemory one = model_memory(glm(), request);
  request.context_parallel = 4;
  const ModelMemory four = model_memory(glm(), request);
  EXPECT_EQ(bytes_of(one, "latents"), bytes_of(four, "latents") * 4);
  EXPECT_EQ(bytes_of(one, "index keys"), bytes_of(four, "index keys") * 4);
  EXPECT_EQ(bytes_of(one, "tails"), bytes_of(four, "tails"));
  EXPECT_EQ(bytes_of(one, "routed experts"), bytes_of(four, "routed experts"));
}

TEST(ModelMemory, KeyValueHeadsAreRepeatedWhereRanksOutnumberThem) {
  const Architecture& m3 = model("minimax-m3");  // 4 heads
  MemoryRequest request = at(64);
  const Bytes one = bytes_of(model_memory(m3, request), "keys and values");
  request.tensor_parallel = 4;
  EXPECT_EQ(bytes_of(model_memory(m3, request), "keys and values") * 4, one);
  request.tensor_parallel = 16;
  EXPECT_EQ(bytes_of(model_memory(m3, request), "keys and values") * 4, one);
}

// Block sizes that vLLM printed (vllm-project/vllm#54296, #57477, #54359).
TEST(EnginePages, BlocksHoldARecurrentState) {
  struct Fact {
    std::int64_t ranks, block, states, pages;
  };
  for (const Fact& fact : {Fact{1, 4352, 1088, 17}, Fact{4, 1152, 288, 9}, Fact{8, 640, 160, 5}}) {
    EXPECT_EQ(hybrid_block_tokens(Bytes(4'341'760 / fact.ranks), 1024, 128), fact.block);
    MemoryRequest request = at(fact.block);
    request.tensor_parallel = fact.ranks;
    const ModelMemory memory = model_memory(glm(), request);
    EXPECT_EQ(bytes_of(memory, "latents"), Bytes(11 * fact.block * 1024));
    EXPECT_EQ(bytes_of(memory, "index keys"), Bytes(11 * fact.states * 132));
    EXPECT_EQ(bytes_of(memory, "tails"), Bytes(11 * fact.states * 132));
    EXPECT_EQ(bytes_of(memory, "recurrent states"), Bytes(34 * fact.block * 1024));
    const serving::PageGeometry pages = serving::page_geometry(fact.block, 4);
    EXPECT_EQ(pages.block_states, fact.states);
    EXPECT_EQ(pages.pages_per_block, fact.pages);
    EXPECT_EQ(bytes_of(memory, "index page table"), Bytes(4 * fact.pages));
  }
}

TEST(EnginePages, VllmsTailTakesAnIndexBlockAndFillsTwoKilobytes) {
  MemoryRequest request = at(1152);
  request.tensor_parallel = 4;
  const MemoryTerm tails = term(model_memory(glm(), request), "tails");
  EXPECT_EQ(tails.bytes, Bytes(11 * 38'016));  // the stride of vllm-project/vllm#57477
  EXPECT_NE(tails.formula.find("2048 B filled"), std::string::npos) << tails.formula;
}

TEST(EnginePages, Fp8LatentsOfTwoRanksPrintedByVllm) {
  // 4608 tokens a block: 2,359,296 B of latents, 152,064 B of index keys.
  EXPECT_EQ(4608 * 512, 2'359'296);
  EXPECT_EQ(4608 / 4 * 132, 152'064);
  // A state of two ranks needs 4240 tokens of 512 B: 4352 in steps of 128; 4608 needs steps of 512.
  EXPECT_EQ(hybrid_block_tokens(Bytes(4'341'760 / 2), 512, 128), 4352);
  EXPECT_EQ(hybrid_block_tokens(Bytes(4'341'760 / 2), 512, 512), 4608);
}

TEST(EnginePages, SnapshotsOfRecurrentStatesDominateAPrefixCache) {
  // LMCache/LMCache#5042, four ranks: 34 x 1,085,440 B for each 1152 tokens.
  MemoryRequest request = at(1152 * 100, Engine::vllm);
  request.tensor_parallel = 4;
  request.prefix_cache = true;
  const ModelMemory memory = model_memory(glm(), request);
  const MemoryTerm snapshots = term(memory, "state snapshots");
  EXPECT_NE(snapshots.formula.find("1085440 B filled"), std::string::npos) << snapshots.formula;
  EXPECT_EQ(snapshots.bytes, Bytes(std::int64_t{100} * 34 * 1152 * 1024));
  EXPECT_GT(snapshots.bytes, bytes_of(memory, "latents") + bytes_of(memory, "index keys"));
}

TEST(EnginePages, SglangAllocatesAnIndexPageForEachTokenPage) {
  // 8448 B for 64 tokens, of which pooled keys fill a fourth (sgl-project/sglang#39156); and a page
  // that belongs to nobody.
  const ModelMemory memory = model_memory(glm(), at(mebi, Engine::sglang));
  EXPECT_EQ(bytes_of(memory, "index keys"), Bytes(std::int64_t{11} * (mebi / 64 + 1) * 8448));
  EXPECT_EQ(bytes_of(memory, "tails"), Bytes(11 * 2048));
  EXPECT_EQ(bytes_of(memory, "token table"), Bytes(4 * (mebi + 4)));
}

TEST(EnginePages, PackedRowsOfDeepSeekV4ArePadded) {
  // 64 entries of 584 B are 37,376 B, and 65 rows of 576 B.
  const ModelMemory memory = model_memory(model("deepseek-v4-flash"), at(256));
  EXPECT_EQ(bytes_of(memory, "compressed entries"), Bytes(21 * 37'440 + 20 * 1'728));
  EXPECT_EQ(bytes_of(memory, "sliding windows"), Bytes(43 * 3 * 37'440));
}

TEST(ModelMemory, DraftsCountTheDraftingLayerAndLargerRings) {
  MemoryRequest request = at(4352, Engine::packed);
  const ModelMemory plain = model_memory(glm(), request);
  request.drafts = 3;
  const ModelMemory drafting = model_memory(glm(), request);
  EXPECT_EQ(bytes_of(drafting, "latents").value * 11, bytes_of(plain, "latents").value * 12);
  EXPECT_EQ(bytes_of(drafting, "tails"), Bytes(12 * 4096));
  EXPECT_GT(bytes_of(drafting, "drafting"), Bytes(2 * 4096 * 2 * 4096 - 1));
  expect_parts(config_error_of([] {
                 MemoryRequest with_drafts = at(64);
                 with_drafts.drafts = 1;
                 model_memory(model("minimax-m3"), with_drafts);
               }),
               {"minimax-m3", "no layers that draft"});
}

TEST(ModelMemory, PublishedFormsStoreWhatTheyKeep) {
  const auto cache = [](const char* name) {
    return bytes_of(model_memory(model(name), at(4096, Engine::packed)), "pooled cache").value;
  };
  // Composite: one vector and V of each head, half of the four that went in.
  EXPECT_EQ(cache("indexpool-a-composite"), std::int64_t{11} * 4096 * 64 * (64 + 64) * 2);
  EXPECT_EQ(cache("indexpool-b-additive"), std::int64_t{11} * 1024 * 512 * 2);
  EXPECT_EQ(cache("indexpool-c-gated"), std::int64_t{11} * 4096 * 64 * 64 * 2);
  EXPECT_EQ(cache("indexpool-d-tfidf"), std::int64_t{11} * 1024 * 2048 * 2);
  EXPECT_EQ(cache("indexpool-e-plain"), cache("indexpool-b-additive"));
}

TEST(ModelMemory, Fp8ParametersCarryAScaleForEachBlock) {
  const Architecture& v32 = model("deepseek-v3.2");
  const ParameterTensor tensor{
      "", "q_b_proj", 24'576, 1536, 1, ParameterFormat::fp8_block, Sharding::rows};
  EXPECT_EQ(parameter_bytes(v32, tensor), Bytes(24'576 * 1536 + 4 * 192 * 12));
  EXPECT_EQ(parameter_bytes(v32, tensor, 8), Bytes(3072 * 1536 + 4 * 24 * 12));
  const ParameterTensor experts{"", "w1", 2048, 4096, 3, ParameterFormat::fp4_group};
  EXPECT_EQ(parameter_bytes(v32, experts), Bytes(3 * 2048 * (2048 + 128)));
}

TEST(Allocator, RoundsAsPyTorchDoes) {
  EXPECT_EQ(allocator_rounded(Bytes(1)), Bytes(512));
  EXPECT_EQ(allocator_rounded(Bytes(512)), Bytes(512));
  EXPECT_EQ(allocator_rounded(Bytes((10 << 20) - 1)), Bytes(10 << 20));
  EXPECT_EQ(allocator_rounded(Bytes((10 << 20) + 1)), Bytes(12 << 20));
}

// Prediction against what a device reported: caches, states, tables, work buffers and rounding.
TEST(Allocator, AnH200HoldsWhatIsPredicted) {
  std::ifstream stream(INDEXPOOL_TEST_DATA "/model/published/h200_allocations.json");
  const nlohmann::json recorded = nlohmann::json::parse(stream);
  int runs = 0;
  for (const auto& run : recorded["runs"]) {
    MemoryRequest request = at(run["tokens"]);
    request.tensor_parallel = run["tensor_parallel"];
    request.sequences = run["sequences"];
    request.drafts = run["drafts"];
    request.kv = run["latent_bytes"] == 512 ? KvFormat::fp8 : KvFormat::bf16;
    const ModelMemory memory = model_memory(glm(), request);
    Bytes predicted = bytes_of(memory, "allocator rounding, the rest");
    for (const MemoryKind kind : {MemoryKind::cache, MemoryKind::state, MemoryKind::table,
                                  MemoryKind::workspace, MemoryKind::activation}) {
      predicted += bytes_of(memory, kind);
    }
    const double measured = run["device_bytes"];
    EXPECT_NEAR(static_cast<double>(predicted.value) / measured, 1, 0.005) << run;
    ++runs;
  }
  EXPECT_EQ(runs, 4);
}

RC_GTEST_PROP(LargestContext, FitsAndOneTokenMoreDoesNot, ()) {
  MemoryRequest request = at(1, *any_engine());
  request.tensor_parallel = *rc::gen::element<std::int64_t>(1, 8);
  const Architecture& any = model(*any_model());
  const Bytes usable(*rc::gen::inRange<std::int64_t>(1, 4'000) * 1'000'000'000);
  const std::int64_t most = largest_context(any, request, usable);
  if (most > 0) {
    request.tokens = most;
    RC_ASSERT(model_memory(any, request).on_one_gpu().total <= usable);
  }
  request.tokens = most + 1;
  RC_ASSERT(model_memory(any, request).on_one_gpu().total > usable);
}

TEST(ModelMemory, ImpossibleRequestsAreRefused) {
  const auto error = [](auto change) {
    MemoryRequest request = at(mebi);
    change(request);
    return config_error_of([&] { model_memory(glm(), request); });
  };
  expect_parts(error([](MemoryRequest& r) { r.tokens = (std::int64_t{1} << 40) + 1; }),
               {"1099511627777", "1 to 1099511627776"});
  expect_parts(error([](MemoryRequest& r) { r.tokens = 0; }), {"tokens", "found 0"});
  expect_parts(error([](MemoryRequest& r) { r.sequences = -1; }), {"sequences", "found -1"});
  expect_parts(error([](MemoryRequest& r) { r.tensor_parallel = 3; }),
               {"64 attention heads", "3 ranks"});
  expect_parts(error([](MemoryRequest& r) { r.pipeline_parallel = 46; }), {"46", "1 to 45"});
  expect_parts(error([](MemoryRequest& r) { r.drafts = -1; }), {"drafted tokens"});
  expect_parts(error([](MemoryRequest& r) { r.prefill_chunk = 0; }), {"prefill chunk"});
  expect_parts(error([](MemoryRequest& r) { r.kv = KvFormat::v4_packed; }), {"v4_packed"});
  expect_parts(error([](MemoryRequest& r) {
                 r.tokens = std::int64_t{1} << 40;
                 r.sequences = 1 << 20;
               }),
               {"63 bits"});
}

// Sizes that a config may say one by one, but not together: refused, never wrapped.
RC_GTEST_PROP(ModelMemory, LargeSizesAreCountedOrRefused, ()) {
  Architecture any = model(*any_model());
  const auto size = [] { return std::int64_t{1} << *rc::gen::inRange(0, 25); };
  any.hidden_size = size();
  any.vocab_size = size();
  any.q_lora_rank = size();
  any.v_head_dim = size();
  any.dense_intermediate = size();
  any.mixture = {size(), size(), size(), size(), size()};
  any.linear = {size(), size(), size(), size(), 4};
  any.indexer.index_n_heads = size();
  any.indexer.index_head_dim = size();
  MemoryRequest request = at(std::int64_t{1} << *rc::gen::inRange(0, 41), *any_engine());
  request.sequences = size();
  try {
    RC_ASSERT(model_memory(any, request).on_one_gpu().total.value > 0);
  } catch (const ConfigError&) {
  }
}

TEST(ModelMemory, TheLongestContextOfAllIsStillCounted) {
  const ModelMemory memory = model_memory(glm(), at(std::int64_t{1} << 40));
  EXPECT_GT(memory.on_one_gpu().total.value, std::int64_t{11'000} << 40);
}

}  // namespace
}  // namespace indexpool
