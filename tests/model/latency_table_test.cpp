// Tables of times: what each adapter reads, and what it refuses with the place.
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/model/latency/timing_table.hpp"

#include "expect_error.hpp"
#include "temporary_folder.hpp"

namespace indexpool {
namespace {

TimingTable read_text_as(const std::string& name, const std::string& text,
                         const std::string& adapter = "") {
  const TemporaryFolder folder;
  write_bytes(folder / name, text);
  return read_timings((folder / name).string(), adapter);
}

constexpr const char* generic_head = "operation,kernel,read_bytes,written_bytes,time_us\n";
constexpr const char* aic_head =
    "framework,version,device,op_name,kernel_source,model,architecture,mla_dtype,kv_cache_dtype,"
    "gemm_type,num_heads,batch_size,isl,tp_size,step,compress_ratio,latency";

TEST(TimingTables, GenericRowsCarryTheUnitOfTheirColumn) {
  const TimingTable table =
      read_text_as("mine.csv", std::string(generic_head) + "stream,copy,1000000,1000000,4.5\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.adapter, "generic");
  EXPECT_EQ(table.rows[0].kernel, "copy");
  EXPECT_DOUBLE_EQ(table.rows[0].time.value, 4.5e-6);
  EXPECT_EQ(std::get<StreamShape>(table.rows[0].shape).read, Bytes(1000000));
  EXPECT_EQ(table.rows[0].line, 2);
}

TEST(TimingTables, GemmsOfAiconfiguratorAreInMilliseconds) {
  const TimingTable table = read_text_as(
      "gemm_perf.csv",
      "framework,version,device,op_name,kernel_source,gemm_dtype,m,n,k,latency\n"
      "VLLM,0.14.0,NVIDIA A100-SXM4-80GB,gemm,vllm_default,bfloat16,8192,65536,4096,15.2875\n"
      "VLLM,0.14.0,NVIDIA A100-SXM4-80GB,gemm,vllm_default,int8_wo,8192,65536,4096,9.1\n");
  EXPECT_EQ(table.adapter, "aiconfigurator-gemm");
  EXPECT_EQ(table.default_device, "a100-sxm4-80gb");
  EXPECT_EQ(table.skipped, 1);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(table.rows[0].time.value, 15.2875e-3);
  EXPECT_EQ(shape_text(table.rows[0].shape), "m=8192,n=65536,k=4096");
}

TEST(TimingTables, LogitsRowsAreGroupedByDecodeAndPrefill) {
  const std::string row =
      "\nSGLang,kernel-level,NVIDIA H200,logits,deep_gemm.fp8_paged_mqa_logits,"
      "sgl-project/DeepSeek-V4-Flash-FP8,DeepseekV4ForCausalLM,fp8_e4m3,fp8_e4m3,fp8_block,64,2,";
  const TimingTable table =
      read_text_as("x.csv", aic_head + row + "1,1,4096,4,0.0035" + row + "16,1,4096,4,0.004");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].part, "decode");
  EXPECT_EQ(table.rows[1].part, "prefill");
  EXPECT_EQ(std::get<CacheShape>(table.rows[0].shape).entry_bytes, 132);
}

TEST(TimingTables, TopkRowsThatRanNothingAreLeftOutAndOneShapeStaysTogether) {
  const std::string row =
      "\nSGLang,kernel-level,NVIDIA H200,topk,topk_transform_v1,"
      "sgl-project/DeepSeek-V4-";
  const std::string rest = "-FP8,A,fp8_e4m3,fp8_e4m3,fp8_block,64,2,1,1,65536,4,";
  const TimingTable table = read_text_as(
      "x.csv", std::string(aic_head) + ",score_mode" + row + "Flash" + rest + "0.039,v1_flat" +
                   row + "Pro" + rest + "0.02,v1_top_last" + row + "Pro" + rest + "0,v1_top_last");
  EXPECT_EQ(table.skipped, 1);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_NE(table.rows[0].kernel, table.rows[1].kernel);
  EXPECT_EQ(table.rows[0].family, table.rows[1].family);
}

TEST(TimingTables, AttentionRowsOfOneTokenAreDecodeSteps) {
  const std::string head =
      "framework,version,device,op_name,kernel_source,batch_size,isl,num_heads,"
      "num_key_value_heads,head_dim,beam_width,attn_dtype,kv_cache_dtype,step,latency";
  const std::string row = "\nVLLM,0.14.0,NVIDIA A100-SXM4-80GB,";
  const TimingTable table = read_text_as(
      "x.csv", head + row + "context_attention,flash,4,16384,64,0,128,1,bfloat16,bfloat16,0,99.2" +
                   row + "generation_attention,flash,4,1,64,8,128,1,bfloat16,bfloat16,127,0.01" +
                   row + "generation_attention,flash,4,1,64,8,128,1,bfloat16,fp8,127,0.01");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.skipped, 1);
  EXPECT_EQ(table.rows[0].form, "prefill_attention");
  EXPECT_EQ(std::get<CacheShape>(table.rows[0].shape).key_heads, 64);
  EXPECT_EQ(table.rows[1].form, "decode_attention");
  EXPECT_EQ(std::get<CacheShape>(table.rows[1].shape).entry_bytes, 512);
}

TEST(TimingTables, StreamRatesBecomeTimesOfSixKernels) {
  const TimingTable table = read_text_as(
      "gpu-stream_a100_40.txt",
      "blockSize   threads       %occ  |                init       read       scale\n"
      "     1024      110592      50.0 %  |  GB/s:        1536  1064  1338  1360  1325  1322\n"
      "      128       13824       6.2%   |  GB/s:         412   162   292   406   270   265\n");
  EXPECT_EQ(table.default_device, "a100-sxm4-40gb");
  ASSERT_EQ(table.rows.size(), 12u);
  const auto& triad = std::get<StreamShape>(table.rows[3].shape);
  EXPECT_EQ(triad.threads_per_block, 1024);
  EXPECT_EQ(triad.read.value, 2 * triad.written.value);
  EXPECT_DOUBLE_EQ(table.rows[3].time.value,
                   static_cast<double>((triad.read + triad.written).value) / 1360e9);
  EXPECT_EQ(std::get<StreamShape>(table.rows[6].shape).threads_per_block, 128);
}

TEST(TimingTables, SmallKernelsCountSixteenBytesAnElement) {
  const TimingTable table =
      read_text_as("gpu-small-kernels_a100_80_graph.txt", "4096  0kB     23     36     45  \n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(table.rows[0].time.value, 16 * 4096 / 45e9);
  EXPECT_EQ(std::get<StreamShape>(table.rows[0].shape).timed_from, TimedFrom::graph);
}

TEST(TimingTables, CacheAndLatencyTablesFollowALineOfClocks) {
  const TimingTable cache =
      read_text_as("gpu-cache_a100_80.txt",
                   "clock: 1410 1410\n     data set   exec time     spread        Eff. bw\n"
                   "        16 kB        48ms       2.2%   18416.5 GB/s         0 GB/s\n");
  ASSERT_EQ(cache.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(cache.rows[0].time.value, 16 * 1024 / 18416.5e9);
  const TimingTable latency = read_text_as("gpu-latency_a100_80.txt",
                                           "clock: 1410\n  1000000  1410  259.6  145.5  205.1\n");
  ASSERT_EQ(latency.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(latency.rows[0].time.value, 205.1 / 1410e6);
}

TEST(TimingTables, LlmcompassNeusightAndVidurAreRead) {
  EXPECT_EQ(read_text_as("softmax_A100.csv", "32768, 4096, 278.8\n").rows[0].part, "over 80 MB");
  EXPECT_DOUBLE_EQ(
      read_text_as("m.csv", "64, 12288, 12288, 0.1900ms, 101.7124Tflops\n").rows[0].time.value,
      0.19e-3);
  const TimingTable neusight = read_text_as("add.csv",
                                            "op,latency_ms,device,B,H,grid_x,block_x,block_y\n"
                                            "add,0.0268,NVIDIA A100-PCIE-40GB,127,168,42,128,1\n");
  EXPECT_EQ(neusight.default_device, "a100-pcie-40gb");
  EXPECT_EQ(std::get<StreamShape>(neusight.rows[0].shape).read, Bytes(2 * 4 * 127 * 168));
  const TimingTable vidur = read_text_as(
      "mlp.csv",
      "time_stats.add.median,time_stats.input_layernorm.median,time_stats.mlp_act.median,"
      "n_embd,n_expanded_embd,num_tokens,num_tensor_parallel_workers\n"
      "0.055,0.104,0.266,4096,11008,4096,1\n");
  ASSERT_EQ(vidur.rows.size(), 3u);
  EXPECT_DOUBLE_EQ(vidur.rows[2].time.value, 0.266e-3);
}

struct Refused {
  const char* what;
  std::string file, text;
  std::vector<std::string> parts;
};

TEST(TimingTables, WhatIsWrongIsNamedWithFileLineAndColumn) {
  const std::string head = generic_head;
  const Refused cases[] = {
      {"a word",
       "a.csv",
       head + "stream,copy,1000,0,fast\n",
       {"a.csv:2:20: found \"fast\" for time_us, expected a number"}},
      {"not a number", "a.csv", head + "stream,copy,1000,0,nan\n", {"a.csv:2:", "\"nan\""}},
      {"trailing unit", "a.csv", head + "stream,copy,1000,0,4.5us\n", {"\"4.5us\""}},
      {"negative bytes", "a.csv", head + "stream,copy,-1,0,4\n", {"a.csv:2:13", "\"-1\""}},
      {"fraction of a byte", "a.csv", head + "stream,copy,1.5,0,4\n", {"whole number"}},
      {"no time", "a.csv", head + "stream,copy,1000,0,0\n", {"expected a time above 0"}},
      {"no bytes", "a.csv", head + "stream,copy,0,0,4\n", {"no bytes at all"}},
      {"unknown operation", "a.csv", head + "steam,copy,1,0,4\n", {"\"steam\"", "expected stream"}},
      {"cells missing", "a.csv", head + "stream,copy,1000,0\n", {"a.csv:2:", "found 4 cells"}},
      {"column missing",
       "a.csv",
       "operation,read_bytes,time_us\nstream,1000,4\n",
       {"a.csv:1: no column \"written_bytes\"", "read_bytes"}},
      {"time's unit missing",
       "a.csv",
       "operation,read_bytes,written_bytes,time\nstream,1,1,4\n",
       {"no column \"time_s\""}},
      {"column twice", "a.csv", "operation,m,m\ngemm,1,1\n", {"a.csv:1:", "appears twice"}},
      {"seconds as microseconds",
       "a.csv",
       head + "stream,copy,1000000000,0,0.0006\n",
       {"a.csv:2: a time of 6e-10 s", "another unit"}},
      {"microseconds as seconds",
       "a.csv",
       "operation,read_bytes,written_bytes,time_s\nstream,1000000000,0,600\n",
       {"another unit"}},
      {"unknown dtype", "a.csv", "operation,m,n,k,dtype,time_us\ngemm,1,1,1,fp4,4\n", {"\"fp4\""}},
      {"only a heading", "a.csv", head, {"no row with a time"}},
      {"nothing", "a.csv", "", {"no known format", "--adapter"}},
      {"time without its unit",
       "m.csv",
       "64, 12288, 12288, 0.1900, 101.7124Tflops\n",
       {"m.csv:1:19", "followed by \"ms\""}},
      {"time and rate disagree",
       "m.csv",
       "64, 12288, 12288, 190.0ms, 101.7124Tflops\n",
       {"time and rate disagree"}},
      {"two devices",
       "add.csv",
       "op,latency_ms,device,B,H\nadd,0.03,NVIDIA H200,9,9\nadd,0.03,NVIDIA H100,9,9\n",
       {"add.csv:3:", "another device"}},
      {"five rates", "gpu-stream.txt", " 16 1728 0.8 % | GB/s: 54 20 39 55 37\n", {"six rates"}}};
  for (const Refused& each : cases) {
    SCOPED_TRACE(each.what);
    expect_parts(config_error_of([&] { read_text_as(each.file, each.text); }), each.parts);
  }
}

TEST(TimingTables, FilesThatAreNotThereAndUnknownAdaptersAreNamed) {
  expect_parts(config_error_of([] { read_timings("/nowhere/x.csv"); }), {"/nowhere/x.csv"});
  expect_parts(config_error_of([] { read_timings("/tmp"); }), {"/tmp: a folder"});
  expect_parts(config_error_of([] { read_text_as("a.csv", "x", "neusigth"); }),
               {"neusigth", "did you mean \"neusight\""});
}

// Whatever bytes a file holds: a table, or a ConfigError.
RC_GTEST_PROP(TimingTables, DamagedTablesAreReadOrRefusedNeverCrash, ()) {
  std::string text = *rc::gen::elementOf(std::vector<std::string>{
      std::string(generic_head) + "stream,copy,1000000,1000000,4.5\nstream,b,5,6,7\n",
      "64, 12288, 12288, 0.1900ms, 101.7124Tflops\n",
      " 1024 110592 50.0 % | GB/s: 1536 1064 1338 1360 1325 1322\n"});
  const int damages = *rc::gen::inRange(1, 6);
  for (int i = 0; i < damages; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = *rc::gen::elementOf(std::string("0123456789,.- \nexE%msT\"\0", 23));
  }
  const auto adapters = timing_adapter_names();
  const std::string adapter = *rc::gen::elementOf(adapters);
  try {
    const TimingTable table = read_text_as("damaged.csv", text, adapter);
    for (const TimedRow& row : table.rows) RC_ASSERT(row.time.value > 0);
  } catch (const ConfigError& error) {
    RC_ASSERT(std::string(error.what()).find("damaged.csv") != std::string::npos);
  }
}

}  // namespace
}  // namespace indexpool
