// The executor: threads, barriers and matrix operations a second.
#include <vector>

#include <benchmark/benchmark.h>

#include "indexpool/sim/simt/device.hpp"
#include "indexpool/sim/simt/session.hpp"

namespace simt = indexpool::sim::simt;

namespace {

// Sums a block's lanes by shuffles and, across warps, through shared memory.
void block_sum(const float* in, float* out) {
  const std::int64_t base = simt::block_index() * simt::block_threads();
  float sum = simt::load_global(in + base + simt::thread_index());
  for (int step = 16; step > 0; step /= 2)
    sum = simt::add(sum, simt::shuffle_xor(simt::full_mask, sum, step));
  auto* partial = reinterpret_cast<float*>(simt::dynamic_shared());
  if (simt::lane_index() == 0) simt::store_shared(partial + simt::warp_index(), sum);
  simt::sync_block();
  if (simt::thread_index() != 0) return;
  float total = 0;
  for (int warp = 0; warp < simt::block_threads() / 32; ++warp)
    total = simt::add(total, simt::load_shared(partial + warp));
  simt::store_global(out + simt::block_index(), total);
}

void BM_BlockSum(benchmark::State& state) {
  constexpr int threads = 128;
  const std::int64_t blocks = 64;
  simt::Memory memory;
  auto* in = reinterpret_cast<float*>(memory.allocate("in", blocks * threads * 4, std::byte{0}));
  auto* out = reinterpret_cast<float*>(memory.allocate("out", blocks * 4, std::byte{0xff}));
  for (std::int64_t i = 0; i < blocks * threads; ++i) in[i] = 1;
  simt::Session session{memory, {}, {}};
  session.options.count = state.range(0) != 0;
  const auto run = [&] { simt::launch(session, blocks, threads, 64, [&] { block_sum(in, out); }); };
  run();
  for (std::int64_t block = 0; block < blocks; ++block)
    if (out[block] != threads) state.SkipWithError("wrong sum: not timed");
  for (auto _ : state) run();
  state.SetItemsProcessed(state.iterations() * blocks * threads);
}
BENCHMARK(BM_BlockSum)->ArgName("count")->Arg(0)->Arg(1);

void BM_MatrixBf16(benchmark::State& state) {
  simt::Memory memory;
  simt::Session session{memory, {}, {}};
  session.options.count = false;
  const int repeats = 256;
  float corner = 0;
  const auto run = [&] {
    simt::launch(session, 1, 32, 0, [&] {
      const std::uint32_t ones = 0x3f803f80u;
      const std::uint32_t a[4] = {ones, ones, ones, ones}, b[2] = {ones, ones};
      float d[4] = {};
      for (int i = 0; i < repeats; ++i) simt::mma_m16n8k16_bf16(d, a, b);
      if (simt::thread_index() == 0) corner = d[0];
    });
  };
  run();
  if (corner != 16.0f * repeats) state.SkipWithError("wrong product: not timed");
  for (auto _ : state) run();
  state.counters["multiply_adds"] =
      benchmark::Counter(16.0 * 8 * 16 * repeats * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(BM_MatrixBf16);

}  // namespace
