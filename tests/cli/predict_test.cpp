// What predict says of memory and time, and what it refuses.
#include <algorithm>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace indexpool::cli {
namespace {

using nlohmann::json;

json rows_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = indexpool(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out);
}

std::int64_t bytes_of(const json& rows, const std::string& what) {
  for (const json& row : rows) {
    if (row["what"] == what) return row["bytes"];
  }
  ADD_FAILURE() << "no row " << what;
  return -1;
}

TEST(Predict, MemoryOfTheIndexerIsExact) {
  const json rows = rows_of({"--tokens", "1M"});
  EXPECT_EQ(rows[0]["what"], "pooled cache");
  EXPECT_EQ(rows[0]["bytes"], 380'633'088);
  EXPECT_EQ(rows[2]["what"], "one key per token");
  EXPECT_EQ(rows[2]["bytes"], 1'522'532'352);
}

TEST(Predict, EveryTermSaysHowItComesAboutAndTheirSumIsTheTotal) {
  const json rows = rows_of({"--tokens", "1M", "--device", "h200-sxm", "--gpus", "8"});
  std::int64_t sum = 0, total = 0;
  for (const json& row : rows) {
    if (row["kind"] == "time" || row["phase"] == "indexer") continue;
    EXPECT_FALSE(row["formula"].get<std::string>().empty()) << row["what"];
    if (row["what"] == "this GPU") {
      total = row["bytes"];
    } else if (row["kind"] != "total" && row["kind"] != "room") {
      EXPECT_FALSE(row["source"].get<std::string>().empty()) << row["what"];
      sum += row["bytes"].get<std::int64_t>();
    }
  }
  EXPECT_EQ(sum, total);
  EXPECT_EQ(bytes_of(rows, "all GPUs"), 8 * total);
  EXPECT_EQ(bytes_of(rows, "fits: left"), static_cast<std::int64_t>(0.9 * 150109880320) - total);
}

TEST(Predict, SaysWhatIsMissingWhereItDoesNotFit) {
  const json rows = rows_of({"--tokens", "1M", "--only", "memory"});
  EXPECT_GT(bytes_of(rows, "does not fit: missing"), 0);
}

TEST(Predict, LargestContextFitsAndOneTokenMoreDoesNot) {
  const std::vector<std::string> served = {"--device", "h200-sxm", "--gpus", "8",
                                           "--kv",     "fp8",      "--only", "memory"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), served.begin(), served.end());
    return rows_of(more);
  };
  const json largest = with({"--max-tokens"});
  EXPECT_EQ(largest[0]["phase"], "largest context");
  const std::int64_t tokens = largest[0]["tokens"];
  EXPECT_GT(tokens, std::int64_t{1} << 20);
  EXPECT_GE(bytes_of(with({"--tokens", std::to_string(tokens)}), "fits: left"), 0);
  EXPECT_GT(bytes_of(with({"--tokens", std::to_string(tokens + 1)}), "does not fit: missing"), 0);
}

TEST(Predict, OptionsReachThePlan) {
  const std::vector<std::string> base = {"--tokens", "1M", "--only", "memory"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return rows_of(more);
  };
  const json plain = with({});
  EXPECT_EQ(bytes_of(with({"--engine", "packed"}), "index keys"), 380'633'088);
  EXPECT_EQ(bytes_of(with({"--engine", "packed", "--unpooled"}), "index keys"), 1'522'532'352);
  EXPECT_EQ(bytes_of(with({"--engine", "sglang"}), "latents"),
            std::int64_t{11} * 1024 * ((1 << 20) + 64));
  EXPECT_EQ(bytes_of(with({"--engine", "packed", "--kv", "fp8"}), "latents") * 2,
            bytes_of(with({"--engine", "packed"}), "latents"));
  EXPECT_EQ(bytes_of(with({"--batch", "3"}), "tails"), 3 * bytes_of(plain, "tails"));
  EXPECT_EQ(bytes_of(with({"--tp", "2", "--cp", "2"}), "all GPUs"),
            4 * bytes_of(with({"--gpus", "4", "--cp", "2"}), "this GPU"));
  EXPECT_LT(bytes_of(with({"--parameters", "fp8"}), "routed experts"),
            bytes_of(plain, "routed experts") * 51 / 100);
  EXPECT_GT(bytes_of(with({"--prefix-cache"}), "state snapshots"), 0);
  EXPECT_LT(bytes_of(with({"--logits-mb", "64"}), "prefill logits"), 68 << 20);
}

TEST(Predict, ReadsACheckpointsConfigAsPublished) {
  const Folder folder;
  const std::string path = folder.file("config.json");
  std::ofstream(path) << R"({"architectures": ["DeepseekV32ForCausalLM"], "ep_size": 1,
    "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "index_head_dim": 128,
    "index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432, "kv_lora_rank": 512,
    "max_position_embeddings": 163840, "model_type": "deepseek_v32",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8,
    "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
    "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "rope_theta": 10000,
    "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 129280})";
  const json rows = rows_of({"--config", path, "--tokens", "1M", "--engine", "packed"});
  EXPECT_EQ(bytes_of(rows, "latents"), std::int64_t{61} * 656 << 20);
  EXPECT_EQ(bytes_of(rows, "index keys"), std::int64_t{61} * 132 << 20);
}

TEST(Predict, EveryBuiltInModelIsCounted) {
  const Outcome list = indexpool({"list", "models", "--format", "json"});
  ASSERT_EQ(list.code, 0) << list.err;
  int models = 0;
  for (const json& row : json::parse(list.out)) {
    const json rows = rows_of({"--model", row["name"], "--tokens", "10M", "--only", "memory"});
    EXPECT_GT(bytes_of(rows, "this GPU"), std::int64_t{10} << 30) << row["name"];
    ++models;
  }
  EXPECT_GE(models, 13);
}

TEST(Predict, IntervalsHoldTheirPredictionAndGrowWithTheContext) {
  std::map<std::string, double> last;
  std::size_t wholes = 0, operations = 0;
  for (const json& row : rows_of({"--tokens", "8K,10M,1G", "--only", "time"})) {
    if (row["what"] == "hidden by a second stream") continue;
    EXPECT_LE(row["time_low_s"], row["time_s"]) << row;
    EXPECT_LE(row["time_s"], row["time_high_s"]) << row;
    const std::string key = row["phase"].get<std::string>() + "/" + row["what"].get<std::string>();
    EXPECT_GE(row["time_s"].get<double>(), last[key]) << key;
    last[key] = row["time_s"];
    if (row["what"] == "whole step") ++wholes;
    if (row["phase"] == "prompt, 8K chunks: indexer") ++operations;
  }
  EXPECT_EQ(wholes, 6u);       // 3 contexts, 2 phases
  EXPECT_EQ(operations, 15u);  // 3 contexts, 4 operations and their sum
}

TEST(Predict, SaysThatThePromptComesInChunks) {
  // run predicts pooling in one launch: a reader must see why its time is another.
  const json rows = rows_of({"--tokens", "1M", "--only", "time"});
  const auto pool =
      std::find_if(rows.begin(), rows.end(), [](const json& row) { return row["what"] == "pool"; });
  ASSERT_NE(pool, rows.end());
  EXPECT_EQ((*pool)["phase"], "prompt, 8K chunks: indexer");
}

TEST(Predict, EveryFormatSaysTheSame) {
  const auto text = [](const char* format, const char* only) {
    return indexpool({"predict", "--tokens", "1M", "--only", only, "--format", format}).out;
  };
  const auto lines = [](const std::string& said) {
    return static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n'));
  };
  for (const char* only : {"memory", "time"}) {
    const std::size_t rows = json::parse(text("json", only)).size();
    EXPECT_EQ(lines(text("table", only)), rows + 2);
    EXPECT_EQ(lines(text("csv", only)), rows + 1);
    EXPECT_EQ(lines(text("md", only)), rows + 2);
    EXPECT_EQ(text("table", only).find('\x1b'), std::string::npos) << "colour without a terminal";
  }
  EXPECT_EQ(lines(text("table", "all")),
            lines(text("table", "memory")) + 1 + lines(text("table", "time")));
}

TEST(Predict, OutWritesTheFileInsteadOfStandardOutput) {
  const Folder folder;
  const std::string path = folder.file("deep/1M.csv");
  const Outcome outcome =
      indexpool({"predict", "--tokens", "1M", "--format", "csv", "--out", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(read_text(path), indexpool({"predict", "--tokens", "1M", "--format", "csv"}).out);
}

TEST(Predict, ThePageShowsTheRooflineAndTheHierarchyUnlessOnlyMemoryIsAskedFor) {
  const Folder folder;
  const std::string path = folder.file("page.html");
  ASSERT_EQ(indexpool({"predict", "--tokens", "64K", "--device", "h200-sxm", "--html", path}).code,
            0);
  for (const char* part : {"Kernels on the roofline of the h200-sxm",
                           "data-flop=", "Through the memory hierarchy", "64K tokens"}) {
    EXPECT_TRUE(contains(read_text(path), part)) << part;
  }
  ASSERT_EQ(indexpool({"predict", "--tokens", "64K", "--only", "memory", "--html", path}).code, 0);
  EXPECT_FALSE(contains(read_text(path), "roofline"));
}

TEST(Predict, HtmlShowsTheWaterfallAndHowToRepeatIt) {
  const Folder folder;
  const std::string path = folder.file("memory.html");
  const Outcome outcome = indexpool({"predict", "--tokens", "1M,10M", "--device", "h200-sxm",
                                     "--gpus", "8", "--only", "memory", "--html", path});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_text(path);
  for (const char* part : {"1M tokens: fits", "10M tokens: does not fit", "gathered index keys",
                           "one index key a token", "indexpool predict --device h200-sxm"}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
}

struct Refusal {
  std::vector<std::string> arguments;
  const char* said;
};

TEST(Predict, ImpossibleRequestsEndWithExitCodeTwo) {
  const Refusal refusals[] = {
      {{"--tokens", "1025G"}, "1099511627776"},
      {{"--tokens", "4MB"}, "--tokens"},
      {{"--tokens", "-1"}, "--tokens"},
      {{"--tp", "3"}, "64 attention heads"},
      {{"--gpus", "6", "--tp", "4"}, "--gpus: found 6"},
      {{"--gpus", "-2"}, "--gpus"},
      {{"--pp", "46"}, "1 to 45"},
      {{"--batch", "0"}, "--batch"},
      {{"--batch", "4GB"}, "--batch"},
      {{"--kv", "fp9"}, "did you mean fp8"},
      {{"--kv", "v4_packed"}, "latent layer does not store its cache as v4_packed"},
      {{"--index", "fp4"}, "mxfp4"},
      {{"--engine", "vlm"}, "did you mean vllm"},
      {{"--parameters", "fp16"}, "did you mean"},
      {{"--utilization", "1.5"}, "--utilization"},
      {{"--utilization", "nan"}, "--utilization"},
      {{"--only", "memry"}, "did you mean memory"},
      {{"--model", "minimax-m3", "--drafts", "2"}, "no layers that draft"},
      {{"--config", "no-such-config.json"}, "cannot be read"},
  };
  for (const Refusal& refusal : refusals) {
    std::vector<std::string> arguments = refusal.arguments;
    arguments.insert(arguments.begin(), "predict");
    const Outcome outcome = indexpool(arguments);
    EXPECT_EQ(outcome.code, 2) << refusal.said << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << refusal.said;
    EXPECT_TRUE(contains(outcome.err, refusal.said)) << refusal.said << ": " << outcome.err;
  }
}

TEST(Predict, AbsurdDeviceConstantsAreRefusedWithTheirPointer) {
  const std::string device = read_text(INDEXPOOL_SOURCE_DIR "/model/devices/a100-sxm4-80gb.json");
  const auto outcome_with = [&](const std::string& from, const std::string& to) {
    std::string text = device;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const Folder folder;
    std::ofstream(folder.file("device.json")) << text;
    return indexpool({"predict", "--device", folder.file("device.json")});
  };
  const std::pair<const char*, const char*> absurd[] = {
      {"\"sm_count\": 108", "\"sm_count\": 9000000000000000000"},
      {"\"memory_bytes\": 85899345920", "\"memory_bytes\": 9000000000000000000"},
      {"\"value\": 2.62e-6", "\"value\": 2.62e200"},
      {"\"value\": 2.62e-6", "\"value\": 2.62e-300"},
  };
  for (const auto& [from, to] : absurd) {
    const Outcome outcome = outcome_with(from, to);
    EXPECT_EQ(outcome.code, 2) << to << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "device.json: /")) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "internal error")) << outcome.err;
  }
}

}  // namespace
}  // namespace indexpool::cli
