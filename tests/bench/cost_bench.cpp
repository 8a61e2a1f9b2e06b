// How many predictions a second one core makes: a decode step is the declared work of append,
// quantize_query, logits and topk of one architecture, put through the cost model of one device.
#include <vector>

#include <benchmark/benchmark.h>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/model/cost_numbers.hpp"
#include "indexpool/model/latency/implementation.hpp"
#include "indexpool/model/step/prepared.hpp"
#include "indexpool/reports/cli/indexer_work.hpp"

namespace {

using namespace indexpool;

struct Operation {
  const kernels::Kernel* kernel;
  kernels::OpArgs args;
};

// One new token of a sequence that then has `tokens`.
class DecodeStep {
 public:
  explicit DecodeStep(std::int64_t tokens) {
    const ArchitectureConfig model = load_architecture("glm-5.3-flash");
    const kernels::Shape shape{model.indexer, numeric_mode(model.numeric_mode)};
    kernels::PagedCache cache;
    cache.page_stride = kernels::page_layout(shape, model.states_per_page).page_bytes();
    cache.states_per_page = static_cast<std::int32_t>(model.states_per_page);
    rows_ = {{tokens - 1, 0, 0, 0}};
    tiles_ =
        kernels::plan_query_tiles(rows_, shape.config.index_kpool, kernels::query_rows_per_tile);
    kernels::AppendArgs append;
    append.shape = shape;
    append.job_count = append.tokens = append.pools_closed = 1;
    append.cache = cache;
    append.tail.ring = static_cast<std::int32_t>(shape.config.index_kpool);
    append.tail.block_stride = 2 * append.tail.ring * shape.config.index_head_dim * 2;
    kernels::QuantizeQueryArgs query;
    query.shape = shape;
    query.rows = 1;
    kernels::LogitsArgs logits;
    logits.shape = shape;
    logits.row_count = 1;
    logits.tile_count = static_cast<std::int64_t>(tiles_.size());
    logits.max_pools = tokens / shape.config.index_kpool;
    logits.cache = cache;
    logits.block_table_width =
        (logits.max_pools + model.states_per_page - 1) / model.states_per_page;
    logits.logits_stride = (logits.max_pools + 3) / 4 * 4;
    logits.host_tiles = tiles_.data();
    logits.host_rows = rows_.data();
    kernels::TopkArgs topk;
    topk.shape = shape;
    topk.logits_stride = logits.logits_stride;
    topk.row_count = 1;
    topk.host_rows = rows_.data();
    for (const kernels::OpArgs& args : {kernels::OpArgs(append), kernels::OpArgs(query),
                                        kernels::OpArgs(logits), kernels::OpArgs(topk)}) {
      operations_.push_back({&kernels::find_kernel("simt", args), args});
    }
  }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<kernels::QueryRow> rows_;
  decltype(kernels::plan_query_tiles({}, 1, 1)) tiles_;
  std::vector<Operation> operations_;
};

void BM_DecodeStep(benchmark::State& state) {
  const DecodeStep step(state.range(0));
  const DeviceSpec device = load_device("a100-sxm4-80gb");
  for (auto _ : state) {
    Seconds sum;
    for (const Operation& operation : step.operations()) {
      sum += predict_numbers(operation.kernel->work(operation.args), device).time;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DecodeStep)->ArgName("tokens")->Arg(4096)->Arg(1 << 20)->Arg(10 << 20);

// With each term in words: what `predict --explain` prints.
void BM_DecodeStepInWords(benchmark::State& state) {
  const DecodeStep step(state.range(0));
  const DeviceSpec device = load_device("a100-sxm4-80gb");
  for (auto _ : state) {
    for (const Operation& operation : step.operations()) {
      benchmark::DoNotOptimize(predict(operation.kernel->work(operation.args), device));
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DecodeStepInWords)->ArgName("tokens")->Arg(1 << 20);

// A whole decode step, projections, attention, experts and head included, for a sweep over context
// lengths: operations that depend on the batch alone keep their times.
step::PreparedStep prepared(const char* device) {
  const Architecture model = load_model("glm-5.3-flash");
  const step::Serving serving;
  return {model, load_device(device), serving,
          cli::indexer_work(model, serving.request, serving.phase)};
}

void BM_WholeDecodeStep(benchmark::State& state) {
  step::PreparedStep step = prepared("h200-sxm");
  const std::int64_t batch = state.range(0);
  std::int64_t tokens = 1 << 20;
  for (auto _ : state) {
    benchmark::DoNotOptimize(step.predict(tokens, batch));
    tokens += 4;  // another context each time
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WholeDecodeStep)->ArgName("batch")->Arg(1)->Arg(16);

// Every operation anew: a batch that was not asked for before.
void BM_WholeDecodeStepOfANewBatch(benchmark::State& state) {
  const step::PreparedStep fresh = prepared(state.range(0) == 0 ? "h200-sxm" : "a100-sxm4-80gb");
  step::PreparedStep step = fresh;
  std::int64_t batch = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(step.predict(1 << 20, batch));
    if (++batch == 8) {
      state.PauseTiming();
      step = fresh;
      batch = 1;
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WholeDecodeStepOfANewBatch)->ArgName("measured_products")->Arg(0)->Arg(1);

void BM_MeasuredGemm(benchmark::State& state) {
  const ImplementationSet set = load_implementations("aiconfigurator-gemm.a100-sxm4-80gb");
  const DeviceSpec device = load_device(set.device);
  const Implementation& gemm = set.implementations.front();
  const KernelForm& form = kernel_form(gemm.form);
  const GemmShape shape{64, 4096, 7168, 2};
  for (auto _ : state) benchmark::DoNotOptimize(estimate(gemm, form, shape, device));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_MeasuredGemm);

}  // namespace
