// Sizes that others have published, digit by digit.
#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/memory/parameters.hpp"
#include "indexpool/model/memory/plan.hpp"

namespace indexpool {
namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

nlohmann::json published() {
  std::ifstream stream(INDEXPOOL_TEST_DATA "/model/published/cache_sizes.json");
  return nlohmann::json::parse(stream);
}

KvFormat kv_named(const std::string& name) {
  using enum KvFormat;
  for (const KvFormat format : {f32, bf16, fp8, fp8_scaled, fp8_ds_mla, v4_packed}) {
    if (name == to_string(format)) return format;
  }
  ADD_FAILURE() << "no format " << name;
  return f32;
}

IndexFormat index_named(const std::string& name) {
  return name == "mxfp4" ? IndexFormat::mxfp4 : IndexFormat::fp8;
}

MemoryRequest request_of(const nlohmann::json& row) {
  MemoryRequest request;
  request.engine = Engine::packed;
  request.kv = kv_named(row["kv_format"]);
  request.index = index_named(row["index_format"]);
  request.pooled = row["pooled"];
  return request;
}

// `value` rounds to `printed` with as many digits after the point as it has.
void expect_printed(double value, const std::string& printed, const std::string& what) {
  const std::size_t point = printed.find('.');
  const auto digits = point == std::string::npos ? 0.0 : double(printed.size() - point - 1);
  EXPECT_NEAR(value, std::stod(printed), 0.5 * std::pow(10.0, -digits) * (1 + 1e-9)) << what;
}

double gigabytes(const Architecture& model, MemoryRequest request, std::int64_t tokens) {
  request.tokens = tokens;
  const ModelMemory memory = model_memory(model, request);
  const Bytes kept = bytes_of(memory, MemoryKind::cache) + bytes_of(memory, MemoryKind::state);
  return static_cast<double>(kept.value) / 1e9;
}

TEST(PublishedMemory, EveryCellOfTheTableIsReproduced) {
  int cells = 0;
  const nlohmann::json table = published();
  for (const auto& row : table["rows"]) {
    const std::string name = row["model"].get<std::string>() + " " +
                             row["kv_format"].get<std::string>() + " " +
                             row["index_format"].get<std::string>();
    const Architecture model = load_model(row["model"]);
    const MemoryRequest request = request_of(row);
    const TokenBytes bytes = token_bytes(model, request);
    expect_printed(bytes.all, row["bytes_per_token"], name);
    expect_printed(bytes.indexer, row["indexer_bytes_per_token"], name);
    cells += 2;
    const std::pair<const char*, std::int64_t> totals[] = {{"gigabytes_at_1e6", 1'000'000},
                                                           {"gigabytes_at_2_to_20", mebi},
                                                           {"gigabytes_at_1e7", 10'000'000}};
    for (const auto& [key, tokens] : totals) {
      if (!row.contains(key)) continue;
      expect_printed(gigabytes(model, request, tokens), row[key], name + " " + key);
      ++cells;
    }
  }
  EXPECT_EQ(cells, 11 * 2 + 10 * 3);
}

TEST(PublishedMemory, IndexerOfGlm53FlashAtAMillionTokensToTheByte) {
  const auto sizes = published()["indexer_of_glm_5_3_flash_at_2_to_20"];
  const ArchitectureConfig glm = load_architecture("glm-5.3-flash");
  EXPECT_EQ(indexer_cache_bytes(glm, mebi), Bytes(sizes["pooled_bytes"].get<std::int64_t>()));
  EXPECT_EQ(unpooled_cache_bytes(glm, mebi), Bytes(sizes["unpooled_bytes"].get<std::int64_t>()));
  // The whole model's plan holds the same.
  MemoryRequest request;
  request.engine = Engine::packed;
  request.tokens = mebi;
  const Architecture model = load_model("glm-5.3-flash");
  EXPECT_EQ(bytes_of(model_memory(model, request), "index keys"), Bytes(380'633'088));
  request.pooled = false;
  EXPECT_EQ(bytes_of(model_memory(model, request), "index keys"), Bytes(1'522'532'352));
}

TEST(PublishedMemory, IndexerOfGlm53FlashInGigabytes) {
  const auto sizes = published()["indexer_of_glm_5_3_flash_gigabytes"];
  const ArchitectureConfig glm = load_architecture("glm-5.3-flash");
  const auto check = [](Bytes bytes, const nlohmann::json& printed) {
    expect_printed(static_cast<double>(bytes.value) / 1e9, printed, "indexer");
  };
  check(indexer_cache_bytes(glm, 1'000'000), sizes["pooled"]["at_1e6"]);
  check(indexer_cache_bytes(glm, 10'000'000), sizes["pooled"]["at_1e7"]);
  check(unpooled_cache_bytes(glm, 1'000'000), sizes["unpooled"]["at_1e6"]);
  check(unpooled_cache_bytes(glm, 10'000'000), sizes["unpooled"]["at_1e7"]);
}

TEST(PublishedMemory, StatesOfOneSequence) {
  MemoryRequest request;
  request.engine = Engine::packed;
  request.tokens = 4;
  const ModelMemory glm = model_memory(load_model("glm-5.3-flash"), request);
  EXPECT_EQ(bytes_of(glm, "recurrent states"), Bytes(147'619'840));  // 34 x 4,341,760
  EXPECT_EQ(bytes_of(glm, "tails"), Bytes(11 * 2048));
  const ModelMemory flash = model_memory(load_model("deepseek-v4-flash"), request);
  EXPECT_EQ(bytes_of(flash, "sliding windows"), Bytes(43 * 128 * 584));
  EXPECT_EQ(bytes_of(flash, "compressor states"), Bytes(21 * (65'536 + 16'384) + 20 * 524'288));
}

TEST(PublishedMemory, ParametersAreAsManyAsThePublishersSay) {
  // Billions, as the model cards print them; the cards round, and count what is left out here.
  struct Card {
    const char* model;
    double billions, tolerance;
  };
  for (const Card& card :
       {Card{"deepseek-v3.2", 671, 0.005}, Card{"glm-5", 744, 0.005}, Card{"glm-5.2", 744, 0.005},
        Card{"deepseek-v4-flash", 284, 0.005}, Card{"deepseek-v4-pro", 1600, 0.03}}) {
    const double billions = static_cast<double>(parameter_count(load_model(card.model))) / 1e9;
    EXPECT_NEAR(billions / card.billions, 1, card.tolerance) << card.model << " " << billions;
  }
}

}  // namespace
}  // namespace indexpool
